// What the runs of a sweep say together, with intervals over seeds (of accuracies over held-out records as well). Pure
// functions of the outcomes; docs/sweeps.md defines the words. Loss means RunOutcome::loss(): held out, at the end,
// infinite after divergence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "norma/lab/estimate.h"
#include "norma/lab/sweep_outcome.h"

namespace norma {

using Outcomes = std::vector<RunOutcome>;

// Runs that differ in nothing but learning rate, warmup and seeds.
struct Contest {
  std::string scheme;
  std::int64_t layers = 0;
  std::string rest;  // what else varies in the sweep, as "width=64, init=0.5"; empty: nothing
  Outcomes runs;

  std::string name() const;  // "pre, 12 layers, width=64"
};

// In the order in which they first appear. Runs that have not ended, and those with the schedule `ramp`, are left out.
std::vector<Contest> contests(const Outcomes& outcomes);

// A sentence for each contest with runs whose loss means nothing: which, and why they are in no comparison.
std::vector<std::string> fault_notes(const Outcomes& outcomes);

// A mean over the seeds that did not diverge and were not stopped early; n = 0 when there is none.
Estimate loss_over_seeds(const Outcomes& runs);

// Loss and share of diverged seeds by learning rate (x) and warmup or depth (y); rows follow y. Cells that were not run
// have n = 0 and a share of NaN.
struct StabilityMap {
  std::string scheme;
  std::int64_t layers = 0;  // 0 when depth is an axis
  std::int64_t warmup = 0;  // when depth is an axis
  std::string rest;
  std::string y_name;  // "warmup" or "layers"
  std::vector<double> lr, y;
  std::vector<std::vector<Estimate>> loss;
  std::vector<std::vector<double>> diverged;
};

// One map by warmup for each contest, and where depth varies one by depth for each scheme and warmup. Maps of a single
// cell are left out.
std::vector<StabilityMap> stability_maps(const Outcomes& outcomes);

// Learning-rate sensitivity (Wortsman et al. 2023): the mean over learning rates of min(loss, loss at the start) - best
// loss, for each seed, with its own best; runs of one warmup. Nothing when there are fewer than two learning rates.
// Seeds that lack a rate, or whose best is divergence, are left out. With `rates` the mean is over these alone, so that
// contests of which some tried more can be compared; the best loss is still that of all.
std::optional<Estimate> sensitivity(const Outcomes& runs, const std::vector<double>& rates = {});

// The largest learning rate that was stable together with every smaller one that was tried. Stable: did not diverge,
// and did not end with nothing learned where a smaller rate learned something.
struct StableRate {
  std::optional<double> lr;         // for all seeds; nothing when the smallest one diverged
  std::optional<double> low, high;  // smallest and largest of the single seeds
  bool beyond = false;              // the largest rate tried was stable: the limit lies higher
};
StableRate largest_stable_lr(const Outcomes& runs);  // runs of one warmup

// The ramp of Chen & Wei 2026 (Keel): the rate grows linearly from 0 to lr over the run; the result is the rate of the
// last calm step before divergence. Calm: at most `calm` nats above the smallest loss so far.
struct RampLimit {
  std::string scheme;
  std::int64_t layers = 0;
  std::string rest;
  Estimate lr;
  bool beyond = false;  // a seed reached the end of the ramp
};
double ramp_limit(const RunOutcome& run, double calm = 1);
std::vector<RampLimit> ramp_limits(const Outcomes& outcomes, double calm = 1);

// The smallest warmup whose best mean loss over learning rates is within `tolerance` nats of the best over all warmups.
// Nothing when no warmup trains.
std::optional<std::int64_t> warmup_need(const Outcomes& runs, double tolerance = 0.05);

// Steps until the held-out loss first reached the target; with fewer than four evaluations, until the running median of
// three of the training loss did, if it did.
struct StepsToTarget {
  Estimate steps;  // over the seeds that reached it; n = 0: none
  int seeds = 0;
};
StepsToTarget steps_to_target(const Outcomes& runs, double target);

// The best setting of a contest: the learning rate and warmup with the smallest mean loss over seeds. A setting with a
// diverged seed never wins over one without; where every setting has one, the contest has no best.
struct Tuned {
  std::string scheme;
  std::int64_t layers = 0;
  std::string rest;
  std::optional<double> lr;
  std::int64_t warmup = 0;
  Estimate loss;                           // n = 0 without a best setting
  Outcomes best;                           // the runs of the best setting
  std::optional<Estimate> sensitivity;     // at the best warmup
  StableRate with_warmup, without_warmup;  // the best over all warmups above 0, and of warmup 0
  std::optional<std::int64_t> needs_warmup;
  double diverged = 0;  // share of all runs of the contest
  StepsToTarget steps_to_target;
  double target = 0;
  std::int64_t steps = 0;  // of the final of a study, which then says rate, warmup and loss; 0: there was none
  std::optional<Estimate> accuracy = {};  // held out, of the same runs as the loss, where it was looked at
};

// A mean over the runs that came to their end and know theirs, with an interval over seeds and held-out records.
std::optional<Estimate> mean_accuracy(const Outcomes& runs);

// `target` for steps_to_target; without one the largest best loss of a tuned run of those schemes that learn something,
// which every such run reaches. Schemes that learn nothing at any setting have a loss, but neither sensitivity nor
// stable rates nor a need of warmup.
// `sensitivity_rates` as in sensitivity().
std::vector<Tuned> tuned(const Outcomes& outcomes, std::optional<double> target = {},
                         const std::vector<double>& sensitivity_rates = {});

// What depth brings a scheme: the tuned loss at every depth, the loss that a doubling takes away (slope on log2 of the
// depth, each seed its own, positive when depth helps), and the smallest depth within `tolerance` of the best loss.
struct DepthEfficiency {
  std::string scheme, rest;
  std::vector<std::int64_t> layers;
  std::vector<Estimate> loss;
  std::optional<Estimate> gain_per_doubling;
  std::int64_t useful_layers = 0;
  double useful_share = 0;  // of the deepest that was tried
};
std::vector<DepthEfficiency> depth_efficiency(const std::vector<Tuned>& tuned, double tolerance = 0.05);

}  // namespace norma
