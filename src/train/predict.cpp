#include "norma/train/predict.h"

#include <algorithm>
#include <cmath>

#include "norma/backends/device.h"
#include "norma/core/error.h"
#include "norma/data/tokenizer.h"
#include "norma/data/vocabulary.h"
#include "norma/train/feeder.h"
#include "norma/train/judge.h"

namespace norma {
namespace {

std::vector<double> read_logits(Session& session) {
  if (session.plan().slot("logits").type.dtype == DType::f64) return session.read<double>("logits", 0);
  const std::vector<float> logits = session.read<float>("logits", 0);
  return {logits.begin(), logits.end()};
}

std::vector<double> softmax_of(std::span<const double> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> probability;
  double sum = 0;
  for (const double one : logits) sum += probability.emplace_back(std::exp(one - largest));
  for (double& one : probability) one /= sum;
  return probability;
}

// Runs batches through the model; targets are any, since nobody reads the loss.
class Classifier {
 public:
  explicit Classifier(const TrainedModel& model)
      : examiner_(examination_plan(model.config.model, device_backend(model.config))) {
    session_ = make_session(examiner_.plan, {.members = 1, .threads = static_cast<int>(model.config.train.threads)});
    load_model(model, examiner_.schedules, *session_);
  }

  const ModelConfig& config() const { return examiner_.config; }

  // `write(record, row, batch)` puts one of `count` records into a row of a batch that `clear` has prepared, and says
  // whether it was cut.
  template <typename Clear, typename Write>
  std::vector<ClassPrediction> run(std::size_t count, const Classified& done, Clear clear, Write write) {
    Feeder feeder(*session_, config(), examiner_.schedules);
    const auto rows = static_cast<std::size_t>(config().batch);
    std::vector<ClassPrediction> all;
    for (std::size_t first = 0; first < count; first += rows) {
      const std::size_t part = std::min(count - first, rows);
      Batch batch;
      clear(batch);
      std::ranges::fill(batch.ids("targets", {config().batch}), 0);
      for (std::size_t row = 0; row < part; ++row)
        all.push_back({.probability = {}, .cut = write(first + row, row, batch)});
      feeder.write(batch, 0);
      session_->run();
      const std::vector<double> logits = read_logits(*session_);
      const std::size_t classes = logits.size() / rows;
      for (std::size_t row = 0; row < part; ++row)
        all[first + row].probability = softmax_of(std::span(logits).subspan(row * classes, classes));
      if (done) done(all);
    }
    return all;
  }

 private:
  Examiner examiner_;
  std::unique_ptr<Session> session_;
};

// A row as Classification lays it out.
bool write_text(const std::string& text, const Source& vocabulary, std::int64_t time, std::size_t row, Batch& batch) {
  const std::size_t tab = std::min(text.find('\t'), text.size());
  const std::string_view whole = text;
  std::vector<std::int32_t> tokens;
  const bool cut = append_classified(*vocabulary.tokenizer(), vocabulary.special(), whole.substr(0, tab),
                                     tab < text.size() ? whole.substr(tab + 1) : "", time, tokens);
  std::copy(tokens.begin(), tokens.end(), batch.ids("tokens").begin() + static_cast<std::int64_t>(row) * time);
  batch.ids("lengths")[row] = static_cast<std::int32_t>(tokens.size());
  return cut;
}

}  // namespace

std::size_t ClassPrediction::best() const {
  return static_cast<std::size_t>(std::max_element(probability.begin(), probability.end()) - probability.begin());
}

std::vector<ClassPrediction> classify(const TrainedModel& model, const Source& vocabulary,
                                      std::span<const std::string> texts, const Classified& done) {
  if (vocabulary.classes() == 0 || vocabulary.tokenizer() == nullptr)
    fail("the model classifies no texts; it was trained on the task {}", model.config.data.task);
  Classifier classifier(model);
  const std::int64_t rows = classifier.config().batch, time = classifier.config().time;
  return classifier.run(
      texts.size(), done,
      [&](Batch& batch) {
        std::ranges::fill(batch.ids("tokens", {rows, time}), vocabulary.special().padding);
        std::ranges::fill(batch.ids("lengths", {rows}), 1);
      },
      [&](std::size_t text, std::size_t row, Batch& batch) {
        return write_text(texts[text], vocabulary, time, row, batch);
      });
}

std::vector<ClassPrediction> classify_images(const TrainedModel& model, const Source& vocabulary,
                                             const NamedImages& images, const Classified& done) {
  const ImageReading* reading = vocabulary.images();
  if (vocabulary.classes() == 0 || reading == nullptr)
    fail("the model classifies no images; it was trained on the task {}", model.config.data.task);
  Classifier classifier(model);
  const Shape shape = {classifier.config().batch, reading->height, reading->width, reading->channels};
  const auto elements = static_cast<std::size_t>(reading->height * reading->width * reading->channels);
  return classifier.run(
      images.names.size(), done, [&](Batch& batch) { std::ranges::fill(batch.numbers("image", shape), 0.0f); },
      [&](std::size_t image, std::size_t row, Batch& batch) {
        std::copy_n(images.numbers.data() + image * elements, elements,
                    batch.numbers("image", shape).data() + row * elements);
        return false;
      });
}

}  // namespace norma
