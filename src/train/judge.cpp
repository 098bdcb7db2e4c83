#include "norma/train/judge.h"

#include <algorithm>
#include <optional>

#include "norma/backends/device.h"
#include "norma/core/error.h"
#include "norma/data/bleu.h"
#include "norma/train/feeder.h"

namespace norma {
namespace {

constexpr std::int64_t kSmallLogits = std::int64_t{1} << 20;  // of one batch and member
constexpr std::int64_t kMostLogits = std::int64_t{1} << 26;   // at once, when a model is judged

std::int64_t logits_of_row(const ModelConfig& config) {
  return config.classes > 0 ? config.classes : config.time * config.vocabulary;
}

template <typename Number>
bool largest_is(std::span<const Number> logits, std::int32_t target) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin() == target;
}

// Forward passes over held-out batches, so many rows at once that their logits fit.
class Examination {
 public:
  Examination(const TrainedModel& model, const Source& source)
      : source_(source), rows_of_batch_(model.config.model.batch) {
    const Examiner examiner = examination_plan(model.config.model, device_backend(model.config));
    config_ = examiner.config;
    session_ = make_session(examiner.plan, {.members = 1, .threads = static_cast<int>(model.config.train.threads)});
    load_model(model, examiner.schedules, *session_);
    feeder_.emplace(*session_, config_, examiner.schedules);
  }

  Scores run() {
    for (std::int64_t index = 0; index < source_.evaluation_batches(); ++index) {
      source_.fill_evaluation(index, batch_);
      if (batch_.lengths.empty())
        batch_.lengths.assign(static_cast<std::size_t>(rows_of_batch_), static_cast<std::int32_t>(config_.time));
      for (std::int64_t row = 0; row < rows_of_batch_; row += config_.batch) examine(row);
    }
    if (accuracy_.counted == 0) return {};
    Scores scores = {{"loss", loss_ / accuracy_.counted}, {"accuracy", accuracy_.share()}};
    if (config_.classes == 0) scores.push_back({"row_accuracy", accuracy_.share_of_rows()});
    return scores;
  }

 private:
  // The rows from `first` on; where there are fewer than the plan takes, `otherwise`.
  std::vector<std::int32_t> rows(const std::vector<std::int32_t>& ids, std::int64_t first,
                                 std::int32_t otherwise) const {
    const std::int64_t width = std::ssize(ids) / rows_of_batch_;
    const std::int64_t count = std::min(config_.batch, rows_of_batch_ - first) * width;
    std::vector<std::int32_t> part(static_cast<std::size_t>(config_.batch * width), otherwise);
    std::copy_n(ids.begin() + first * width, count, part.begin());
    return part;
  }

  void examine(std::int64_t first) {
    const Batch part{.tokens = rows(batch_.tokens, first, 0),
                     .targets = rows(batch_.targets, first, kIgnored),
                     .source = rows(batch_.source, first, 0),
                     .source_lengths = rows(batch_.source_lengths, first, 1),
                     .lengths = rows(batch_.lengths, first, 1)};
    feeder_->write(part, 0);
    const auto counted =
        std::count_if(part.targets.begin(), part.targets.end(), [](std::int32_t id) { return id != kIgnored; });
    if (counted == 0) return;
    session_->run();
    loss_ += static_cast<double>(counted) * session_->number("loss", 0);
    accuracy_.add(*session_, 0, part.targets);
  }

  const Source& source_;
  ModelConfig config_;
  std::int64_t rows_of_batch_;
  std::unique_ptr<Session> session_;
  std::optional<Feeder> feeder_;
  Batch batch_;
  double loss_ = 0;
  Accuracy accuracy_;
};

void add_bleu(const TrainedModel& model, const Source& source, const BeamOptions& beam, Scores& scores) {
  std::vector<std::vector<std::int32_t>> sources;
  std::vector<std::string> hypotheses, references;
  Batch batch;
  for (std::int64_t index = 0; index < source.evaluation_batches(); ++index) {
    source.fill_evaluation(index, batch);
    const std::int64_t rows = std::ssize(batch.source_lengths);
    const std::int64_t width = std::ssize(batch.source) / rows;
    for (std::int64_t row = 0; row < rows; ++row) {
      std::string reference = source.reference(index, row);
      if (reference.empty()) continue;
      const auto begin = batch.source.begin() + row * width;
      sources.emplace_back(begin, begin + batch.source_lengths[static_cast<std::size_t>(row)]);
      references.push_back(std::move(reference));
    }
  }
  if (sources.empty()) return;
  const GenerateOptions options{.most_tokens = model.config.model.time, .beam = beam};
  for (const Hypothesis& hypothesis : generate(model, source, sources, options))
    hypotheses.push_back(source.decode(hypothesis.tokens));
  const Bleu bleu = corpus_bleu(hypotheses, references);
  scores.push_back({"bleu", bleu.score});
  scores.push_back({"brevity_penalty", bleu.brevity_penalty});
  scores.push_back(
      {"length_ratio", static_cast<double>(bleu.hypothesis_length) / static_cast<double>(bleu.reference_length)});
}

}  // namespace

void Accuracy::add(Session& session, int member, std::span<const std::int32_t> targets) {
  const Type& type = session.plan().slot("logits").type;
  const auto classes = static_cast<std::size_t>(type.shape.channels());
  // Of a classifier every target is a row of its own.
  const std::size_t time = type.shape.rank() == 3 ? static_cast<std::size_t>(type.shape[1]) : 1;
  NORMA_ASSERT(targets.size() * classes == static_cast<std::size_t>(type.shape.elements()));
  const auto count = [&](auto logits) {
    for (std::size_t row = 0; row < targets.size(); row += time) {
      double row_counted = 0, row_right = 0;
      for (std::size_t i = row; i < row + time; ++i) {
        if (targets[i] == kIgnored) continue;
        ++row_counted;
        row_right += largest_is(logits.subspan(i * classes, classes), targets[i]);
      }
      counted += row_counted;
      right += row_right;
      rows += row_counted > 0;
      rows_right += row_counted > 0 && row_right == row_counted;
    }
  };
  if (type.dtype == DType::f32) {
    const std::vector<float> logits = session.read<float>("logits", member);
    count(std::span(logits));
  } else {
    const std::vector<double> logits = session.read<double>("logits", member);
    count(std::span(logits));
  }
}

Examiner examination_plan(const ModelConfig& config, const Backend& backend) {
  Examiner examiner{.config = config};
  examiner.config.dropout = examiner.config.smoothing = false;
  examiner.config.batch = std::clamp<std::int64_t>(kMostLogits / logits_of_row(config), 1, config.batch);
  Graph graph;
  const Model built = build_model(graph, examiner.config, {.logits = true});
  graph.output("loss", built.loss);
  graph.output("logits", built.logits);
  examiner.schedules = built.schedules;
  examiner.plan = compile(graph, backend);
  return examiner;
}

bool logits_are_small(const ModelConfig& config) { return logits_of_row(config) <= kSmallLogits / config.batch; }

Scores judge(const TrainedModel& model, const Source& source, const JudgeOptions& options) {
  Scores scores = Examination(model, source).run();
  if (options.translate && model.config.model.family == Family::encoder_decoder)
    add_bleu(model, source, options.beam, scores);
  return scores;
}

}  // namespace norma
