// What a trained model is judged by beside its loss: accuracy on held-out data, and BLEU of translations.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "norma/core/share.h"
#include "norma/data/source.h"
#include "norma/device/session.h"
#include "norma/train/generate.h"

namespace norma {

struct Score {
  std::string name;
  double value = 0;
};
using Scores = std::vector<Score>;

// How often the largest logit is that of the target. Ties go to the smaller id.
struct Accuracy {
  double counted = 0, right = 0;  // targets
  double rows = 0, rows_right = 0;

  // The output "logits" [.., classes] of a member after a run, and one target for each of its rows.
  void add(Session& session, int member, std::span<const std::int32_t> targets);
  RightShare share() const { return {right / counted, counted}; }
  double share_of_rows() const { return rows_right / rows; }
};

// The forward pass that judging runs, with "loss" and "logits": of so many rows at once (its config's batch) that their
// logits fit.
struct Examiner {
  ModelConfig config;
  std::shared_ptr<const Plan> plan = nullptr;
  std::vector<Schedule> schedules = {};
};
Examiner examination_plan(const ModelConfig& config, const Backend& backend);

// Whether it says one class of each record, such as an image or a node, and not a token at every position.
bool is_classifier(const ModelConfig& config);

// Whether logits of a whole batch are so few that an evaluation may look at them every time.
bool logits_are_small(const ModelConfig& config);

struct JudgeOptions {
  bool translate = true;  // BLEU takes much longer than all else
  BeamOptions beam = {};
};

// Over the held-out batches of `source`:
//   loss, accuracy     of counted targets, each predicted from what is right before it
//   accuracy_low, accuracy_high   of a classifier: 95 % interval over the records that were held out
//   records, records_held_out     of a classifier: how many it was judged by, and how many there are
//   row_accuracy       rows without a mistake; not of classifiers
//   bleu, brevity_penalty, length_ratio   of translations by beam search, against Source::reference
Scores judge(const TrainedModel& model, const Source& source, const JudgeOptions& options = {});

}  // namespace norma
