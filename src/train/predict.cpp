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

// Rows as Classification lays them out; targets are any, since nobody reads the loss.
class Classifier {
 public:
  Classifier(const TrainedModel& model, const Source& vocabulary)
      : vocabulary_(vocabulary), examiner_(examination_plan(model.config.model, device_backend(model.config))) {
    session_ = make_session(examiner_.plan, {.members = 1, .threads = static_cast<int>(model.config.train.threads)});
    load_model(model, examiner_.schedules, *session_);
  }

  std::vector<TextPrediction> run(std::span<const std::string> texts) {
    const ModelConfig& config = examiner_.config;
    Feeder feeder(*session_, config, examiner_.schedules);
    std::vector<TextPrediction> all;
    for (std::size_t first = 0; first < texts.size(); first += static_cast<std::size_t>(config.batch)) {
      const auto part =
          texts.subspan(first, std::min<std::size_t>(texts.size() - first, static_cast<std::size_t>(config.batch)));
      Batch batch;
      std::ranges::fill(batch.ids("tokens", {config.batch, config.time}), vocabulary_.special().padding);
      std::ranges::fill(batch.ids("targets", {config.batch}), 0);
      std::ranges::fill(batch.ids("lengths", {config.batch}), 1);
      for (std::size_t row = 0; row < part.size(); ++row)
        all.push_back({.probability = {}, .cut = write(part[row], row, batch)});
      feeder.write(batch, 0);
      session_->run();
      const std::vector<double> logits = read_logits(*session_);
      const std::size_t classes = logits.size() / static_cast<std::size_t>(config.batch);
      for (std::size_t row = 0; row < part.size(); ++row)
        all[first + row].probability = softmax_of(std::span(logits).subspan(row * classes, classes));
    }
    return all;
  }

 private:
  bool write(const std::string& text, std::size_t row, Batch& batch) const {
    const std::size_t tab = std::min(text.find('\t'), text.size());
    const std::string_view whole = text;
    std::vector<std::int32_t> tokens;
    const std::int64_t time = examiner_.config.time;
    const bool cut = append_classified(*vocabulary_.tokenizer(), vocabulary_.special(), whole.substr(0, tab),
                                       tab < text.size() ? whole.substr(tab + 1) : "", time, tokens);
    std::copy(tokens.begin(), tokens.end(), batch.ids("tokens").begin() + static_cast<std::int64_t>(row) * time);
    batch.ids("lengths")[row] = static_cast<std::int32_t>(tokens.size());
    return cut;
  }

  const Source& vocabulary_;
  Examiner examiner_;
  std::unique_ptr<Session> session_;
};

}  // namespace

std::size_t TextPrediction::best() const {
  return static_cast<std::size_t>(std::max_element(probability.begin(), probability.end()) - probability.begin());
}

std::vector<TextPrediction> classify(const TrainedModel& model, const Source& vocabulary,
                                     std::span<const std::string> texts) {
  if (vocabulary.classes() == 0 || vocabulary.tokenizer() == nullptr)
    fail("the model classifies no texts; it was trained on the task {}", model.config.data.task);
  return Classifier(model, vocabulary).run(texts);
}

}  // namespace norma
