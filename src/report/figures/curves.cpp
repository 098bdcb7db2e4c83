// Loss by step at the tuned settings, mean and band over seeds; above the optimum where it is known.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "report/figures/axis.h"
#include "report/figures/parts.h"

namespace norma {
namespace {

constexpr double kAlike = 0.03;  // of the height of the plot: curves nearer than this cover one another

// The runs behind a tuned setting: those of the final of a study where there was one.
std::vector<const RunOutcome*> runs_of(const Results& results, const std::vector<Contest>& contests,
                                       const Tuned& tuned) {
  const bool final = std::any_of(results.runs.begin(), results.runs.end(), [&](const RunOutcome& run) {
    return run.scheme == tuned.scheme && run.stage == Stage::final;
  });
  std::vector<const RunOutcome*> runs;
  for (const Contest& contest : contests) {
    if (contest.scheme != tuned.scheme || contest.layers != tuned.layers || contest.rest != tuned.rest) continue;
    for (const RunOutcome& run : contest.runs) {
      if (tuned.lr != run.lr || tuned.warmup != run.warmup || run.status != RunStatus::finished) continue;
      if (final && (run.stage != Stage::final || run.steps != tuned.steps)) continue;
      if (!final && run.stage && *run.stage != Stage::map) continue;
      runs.push_back(&run);
    }
  }
  return runs;
}

struct Curves {
  std::vector<draw::Line> lines;
  bool held_out = true, above_optimum = false;
  int most_seeds = 1;
  std::string unit = "nats";
  double most = std::numeric_limits<double>::infinity();  // that is drawn
};

// Subtracts the optimum where every mean lies above it.
void measure_from(Curves& curves, std::optional<double> optimum) {
  if (!optimum) return;
  for (const draw::Line& line : curves.lines) {
    for (const double y : line.y) {
      if (y <= *optimum) return;
    }
  }
  curves.above_optimum = true;
  for (draw::Line& line : curves.lines) {
    for (std::vector<double>* values : {&line.y, &line.low, &line.high}) {
      for (double& value : *values) value -= *optimum;
    }
  }
}

Curves curves_of(const Results& results, const Cast& cast) {
  Curves curves;
  curves.unit = loss_unit(results);
  const std::vector<Contest> all = contests(results.runs);
  for (const Tuned* tuned : tuned_in_order(results)) {
    const MeanCurve mean = mean_curve(runs_of(results, all, *tuned));
    if (mean.step.size() < 2) continue;
    const CastMember& member = cast.of(tuned->scheme);
    draw::Line line{.label = row_name(results, cast, *tuned),
                    .scheme = cast.index(tuned->scheme),
                    .tone = member.tone,
                    .x = mean.step,
                    .y = mean.mean,
                    .low = mean.low,
                    .high = mean.high};
    for (std::size_t i = 0; i < mean.step.size(); ++i) {
      const Estimate loss = {mean.mean[i], mean.low.empty() ? mean.mean[i] : mean.low[i],
                             mean.high.empty() ? mean.mean[i] : mean.high[i], mean.seeds};
      line.tips.push_back(fmt::format("{}, step {}: {} loss {}", line.label, mean.step[i],
                                      mean.held_out ? "held-out" : "training", draw::loss_text(loss)));
    }
    for (double& low : line.low) low = std::max(low, 0.0);  // no loss is below 0
    curves.held_out = curves.held_out && mean.held_out;
    curves.most_seeds = std::max(curves.most_seeds, mean.seeds);
    curves.lines.push_back(std::move(line));
  }
  measure_from(curves, optimum_of(results));
  curves.most = most_shown(results) - (curves.above_optimum ? *optimum_of(results) : 0);
  return curves;
}

// Whether two curves cover one another over their second half.
bool coincide(const std::vector<draw::Line>& lines, bool log) {
  draw::Range range(log);
  for (const draw::Line& line : lines) {
    for (const double y : line.y) range.add(y);
  }
  if (range.empty()) return false;
  const draw::Scale scale = range.scale(0, 1);
  for (std::size_t a = 0; a < lines.size(); ++a) {
    for (std::size_t b = a + 1; b < lines.size(); ++b) {
      if (lines[a].x != lines[b].x) continue;
      double sum = 0;
      const std::size_t size = lines[a].y.size(), half = size / 2;
      for (std::size_t i = half; i < size; ++i) sum += std::abs(scale.at(lines[a].y[i]) - scale.at(lines[b].y[i]));
      if (sum / static_cast<double>(size - half) < kAlike) return true;
    }
  }
  return false;
}

// "excess training loss (nats)" above the optimum, or what the loss is: panels are not high.
std::string label_of(const Curves& curves) {
  const bool nats = curves.unit == "nats";
  return fmt::format("{}{} {}{}", curves.above_optimum ? "excess " : "", curves.held_out ? "held-out" : "training",
                     nats ? "loss" : curves.unit, nats ? " (nats)" : "");
}

std::vector<draw::Panel> panels_of(const Curves& curves, bool facets) {
  const draw::Panel empty{
      .x_label = "step", .y_label = label_of(curves), .y_log = curves.above_optimum, .y_most = curves.most};
  std::vector<draw::Panel> panels;
  if (!facets) {
    panels.push_back(empty);
    panels.back().lines = curves.lines;
    return panels;
  }
  for (const draw::Line& own : curves.lines) {
    draw::Panel panel = empty;
    panel.title = own.label;
    panel.scheme = own.scheme;
    panel.tone = own.tone == draw::Tone::rest ? draw::Tone::ink : own.tone;
    panel.names = false;
    for (const draw::Line& other : curves.lines) {
      if (&other == &own) continue;
      panel.lines.push_back(other);
      panel.lines.back().background = true;
      panel.lines.back().tips.clear();
    }
    panel.lines.push_back(own);
    panels.push_back(std::move(panel));
  }
  return panels;
}

}  // namespace

void add_curves_figure(std::vector<Figure>& figures, const Results& results, const Cast& cast) {
  const Curves curves = curves_of(results, cast);
  if (curves.lines.empty()) return;
  const bool facets =
      curves.lines.size() > 2 && (curves.lines.size() > 12 || coincide(curves.lines, curves.above_optimum));
  auto panels = std::make_shared<std::vector<draw::Panel>>(panels_of(curves, facets));
  std::string caption =
      fmt::format("{} loss by step at the tuned setting{}", curves.held_out ? "Held-out" : "Training",
                  curves.above_optimum ? ", above the optimum of the task, on a logarithmic axis" : "");
  caption += curves.most_seeds > 1 ? "; lines are means over seeds, bands their 95 % intervals." : "; one seed each.";
  if (!curves.held_out) caption += " Each point is a mean over a stretch of steps.";
  if (facets) caption += " One panel for each scheme, since curves coincide; the others are grey.";
  caption += beyond_words(results, curves.lines, curves.most);
  figures.push_back({.id = "curves",
                     .title = "Loss during training",
                     .caption = caption,
                     .numbers = numbers_of(*panels),
                     .draw = [panels, facets](double width) {
                       const draw::Grid grid =
                           facets
                               ? draw::Grid{.columns = width < 500 ? 2 : 4, .height = 110, .axes = draw::Axes::shared}
                               : draw::Grid{.height = 240};
                       return draw_panels(*panels, grid, width);
                     }});
}

}  // namespace norma
