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
  return config.family->output(config).shape.elements() / config.batch;
}

bool answers_classes(const ModelConfig& config) {
  return config.family->output(config).kind == OutputSpec::Kind::classes;
}

template <typename Number>
bool largest_is(std::span<const Number> logits, std::int32_t target) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin() == target;
}

// Forward passes over held-out batches, so many rows at once that their logits fit.
class Examination {
 public:
  Examination(const TrainedModel& model, const Source& source)
      : source_(source),
        rows_of_batch_(model.config.model.batch),
        whole_inputs_(model.config.model.family->inputs(model.config.model)),
        judges_classes_(answers_classes(model.config.model)) {
    const Examiner examiner = examination_plan(model.config.model, device_backend(model.config));
    config_ = examiner.config;
    session_ = make_session(examiner.plan, {.members = 1, .threads = static_cast<int>(model.config.train.threads)});
    load_model(model, examiner.schedules, *session_);
    feeder_.emplace(*session_, config_, examiner.schedules);
  }

  Scores run() {
    for (std::int64_t index = 0; index < source_.evaluation_batches(); ++index) {
      source_.fill_evaluation(index, batch_);
      add_whole_lengths(whole_inputs_, batch_);
      for (std::int64_t row = 0; row < rows_of_batch_; row += config_.batch) examine(row);
    }
    if (counted_ == 0) return {};
    Scores scores = {{"loss", loss_ / counted_}};
    if (!judges_classes_) return scores;
    const RightShare share = accuracy_.share();
    scores.push_back({"accuracy", share.value});
    // What an accuracy is worth depends on how many records it rests on.
    if (is_classifier(config_)) {
      const ShareInterval interval = wilson_interval(share);
      scores.push_back({"accuracy_low", interval.low});
      scores.push_back({"accuracy_high", interval.high});
      scores.push_back({"records", accuracy_.rows});
      if (source_.held_out_records() > 0)
        scores.push_back({"records_held_out", static_cast<double>(source_.held_out_records())});
    }
    if (!is_classifier(config_)) scores.push_back({"row_accuracy", accuracy_.share_of_rows()});
    return scores;
  }

 private:
  // The rows from `first` on. Where there are fewer than the plan takes, nothing is asked of one token.
  Batch rows(std::int64_t first) const {
    if (config_.batch == rows_of_batch_) return batch_;
    Batch part = batch_.rows(first, config_.batch);
    const auto fill_missing = [&](const InputSpec& input, std::int32_t otherwise) {
      Batch::Ids& ids = part.ids(input.name);
      const std::int64_t there = std::min(config_.batch, rows_of_batch_ - first) * std::ssize(ids) / config_.batch;
      std::fill(ids.begin() + there, ids.end(), otherwise);
    };
    for (const InputSpec& input : whole_inputs_) {
      if (input.content == InputSpec::Content::targets) fill_missing(input, kIgnored);
      if (input.content == InputSpec::Content::lengths) fill_missing(input, 1);
    }
    return part;
  }

  void examine(std::int64_t first) {
    const Batch part = rows(first);
    feeder_->write(part, 0);
    const double counted = counted_targets(whole_inputs_, part);
    if (counted == 0) return;
    session_->run();
    loss_ += counted * session_->number("loss", 0);
    counted_ += counted;
    if (judges_classes_) accuracy_.add(*session_, 0, part.ids("targets"));
  }

  const Source& source_;
  ModelConfig config_;
  std::int64_t rows_of_batch_;
  std::unique_ptr<Session> session_;
  std::optional<Feeder> feeder_;
  Batch batch_;
  std::vector<InputSpec> whole_inputs_;  // of whole batches
  bool judges_classes_;
  double loss_ = 0, counted_ = 0;
  Accuracy accuracy_;
};

void add_bleu(const TrainedModel& model, const Source& source, const BeamOptions& beam, Scores& scores) {
  std::vector<std::vector<std::int32_t>> sources;
  std::vector<std::string> hypotheses, references;
  Batch batch;
  for (std::int64_t index = 0; index < source.evaluation_batches(); ++index) {
    source.fill_evaluation(index, batch);
    const Batch::Ids &read = batch.ids("source"), &lengths = batch.ids("source_lengths");
    const std::int64_t rows = std::ssize(lengths);
    const std::int64_t width = std::ssize(read) / rows;
    for (std::int64_t row = 0; row < rows; ++row) {
      std::string reference = source.reference(index, row);
      if (reference.empty()) continue;
      const auto begin = read.begin() + row * width;
      sources.emplace_back(begin, begin + lengths[static_cast<std::size_t>(row)]);
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
  examiner.config.dropout = examiner.config.smoothing = examiner.config.mixture = false;
  examiner.config.batch = std::clamp<std::int64_t>(kMostLogits / logits_of_row(config), 1, config.batch);
  Graph graph;
  const Model built = build_model(graph, examiner.config, {.logits = true, .purpose = Purpose::evaluate});
  graph.output("loss", built.loss);
  graph.output("logits", built.logits);
  examiner.schedules = built.schedules;
  examiner.plan = compile(graph, backend);
  return examiner;
}

bool is_classifier(const ModelConfig& config) {
  return answers_classes(config) && config.family->output(config).shape.rank() == 2;
}

bool logits_are_small(const ModelConfig& config) {
  return answers_classes(config) && logits_of_row(config) <= kSmallLogits / config.batch;
}

Scores judge(const TrainedModel& model, const Source& source, const JudgeOptions& options) {
  Scores scores = Examination(model, source).run();
  if (options.translate && model.config.model.family->speech == Speech::answers)
    add_bleu(model, source, options.beam, scores);
  return scores;
}

}  // namespace norma
