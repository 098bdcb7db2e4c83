#include "lab/study/final_losses.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "norma/core/side_by_side.h"
#include "norma/lab/subject.h"
#include "norma/lab/weights.h"
#include "norma/train/judge.h"

namespace norma {
namespace {

// One target and what the model made of it.
struct Answer {
  double loss = 0, right = 0;
};

// -log p of the target, and whether it has the largest logit (of equal ones the first).
Answer answer_of(std::span<const double> logits, std::int32_t target) {
  const auto largest = std::ranges::max_element(logits);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - *largest);
  return {*largest + std::log(sum) - logits[static_cast<std::size_t>(target)],
          largest - logits.begin() == target ? 1.0 : 0.0};
}

// Of the batch that was run, as many as it has targets.
void add_answers(Rig& rig, std::vector<Answer>& answers) {
  const auto targets = rig.session().read<std::int32_t>("targets", 0);
  const std::vector<double> logits = rig.values("logits");
  const std::size_t classes = logits.size() / targets.size();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] != kIgnored)
      answers.push_back(answer_of(std::span(logits).subspan(i * classes, classes), targets[i]));
  }
}

struct Scored {
  std::vector<double> losses, right;
};

Scored score(const FinalRun& run, const std::shared_ptr<const Source>& source) {
  const StoredModel stored = open_stored_model(run.directory);
  Subject subject{.model = stored.config.model, .source = source, .weights = stored.weights};
  subject.seeds = {static_cast<std::uint64_t>(stored.config.train.data_seed)};
  subject.model.dropout = subject.model.smoothing = subject.model.mixture = false;
  subject.step = run.step;
  subject.steps = run.steps;
  subject.threads = 1;
  subject.device = stored.config.train.device;
  const bool answers = is_classifier(subject.model) && logits_are_small(subject.model);
  Rig rig(subject,
          [&](Graph& graph, const Model& model) {
            graph.output("loss", model.loss);
            if (answers) graph.output("logits", model.logits);
          },
          {.model = {.logits = answers}});
  Scored scored;
  std::vector<Answer> found;
  for (std::int64_t batch = 0; batch < source->evaluation_batches(); ++batch) {
    rig.load_evaluation_batch(batch);
    if (rig.counted_targets() == 0) continue;
    rig.run();
    scored.losses.push_back(rig.number("loss", 0));
    if (answers) add_answers(rig, found);
  }
  const bool by_answer = scored.losses.size() == 1 && found.size() > 1;
  if (by_answer) scored.losses.clear();
  for (const Answer& one : found) {
    scored.right.push_back(one.right);
    if (by_answer) scored.losses.push_back(one.loss);
  }
  return scored;
}

}  // namespace

FinalScores final_scores(const std::vector<FinalRun>& runs, const std::shared_ptr<const Source>& source, int threads,
                         const std::function<bool()>& stopping) {
  FinalScores scores{LossTable(runs.size()), LossTable(runs.size())};
  side_by_side(runs.size(), threads, [&](std::size_t index) {
    if (stopping()) return;
    Scored scored = score(runs[index], source);
    scores.losses[index] = std::move(scored.losses);
    scores.right[index] = std::move(scored.right);
  });
  return scores;
}

}  // namespace norma
