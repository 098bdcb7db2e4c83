// What several figures take from results: runs behind a setting, mean curves over seeds, names of rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "norma/report/figure.h"
#include "report/figures/cast.h"
#include "report/figures/chart.h"
#include "report/figures/heat.h"

namespace norma {

// Each adds its figures, or none where the results lack what it shows.
void add_loss_figure(std::vector<Figure>& figures, const Results& results, const Cast& cast);
void add_stability_figures(std::vector<Figure>& figures, const Results& results, const Cast& cast);
void add_curves_figure(std::vector<Figure>& figures, const Results& results, const Cast& cast);
void add_depth_figures(std::vector<Figure>& figures, const Results& results, const Cast& cast);
void add_init_figures(std::vector<Figure>& figures, const Results& results, const Cast& cast);

// The best of a list is first: by rank in a study, by loss in a sweep; what is not ranked comes last.
std::vector<const Tuned*> tuned_in_order(const Results& results);
// "Pre-LN", or with depth and the rest where a sweep varies them: "Pre-LN, 24 layers, width=64".
std::string row_name(const Results& results, const Cast& cast, const Tuned& tuned);
const Verdict* verdict_of(const Results& results, const std::string& scheme);
// "Pre-LN", or with depth and the rest where maps differ in them.
std::string map_name(const Results& results, const Cast& cast, const StabilityMap& map);
// "short runs" of a study, "runs" of a sweep.
std::string_view mapped_runs(const Results& results);
// What losses are measured in: "nats", where the task does not say otherwise.
std::string loss_unit(const Results& results);
// What a model does that has learned nothing: "guessing", or of one that is asked for numbers "the mean".
// Losses that are still told apart in a figure: a little above guessing, where a loss is no less than nothing.
double most_shown(const Results& results);
// What a caption says where a figure has losses beyond that; empty: it has none.
std::string beyond_words(const Results& results, const std::vector<draw::Line>& lines, double most);
// "94.1 % (93.8 to 94.4) right".
std::string right_answers(const Estimate& accuracy);
std::string_view guessing_word(const Results& results);
std::string_view guessing_deed(const Results& results);  // "guessing" or "predicting the mean"
// The map by warmup that belongs to a setting; null where there is none.
const StabilityMap* map_of(const Results& results, const Tuned& tuned);

// Losses of a map on the ramp: from the best of all maps to guessing.
struct LossLevels {
  double best = 0, worst = 1;
  double level(double loss) const;
};
LossLevels loss_levels(const Results& results);
draw::Heat heat_of(const Results& results, const StabilityMap& map, const Cast& cast, const LossLevels& levels);

struct MeanCurve {
  std::vector<double> step, mean, low, high;
  int seeds = 0;
  bool held_out = false;
};
// Over the seeds, at steps that all have; training losses, which are noisy, as means over up to 48 stretches.
MeanCurve mean_curve(const std::vector<const RunOutcome*>& runs);

std::optional<double> optimum_of(const Results& results);
// Whether an inspection is of a trained model, whose configuration it then has.
bool is_trained(const Results& results);
std::optional<double> guessing_of(const Results& results);

}  // namespace norma
