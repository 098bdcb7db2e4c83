#include "report/figures/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "report/figures/axis.h"

namespace norma {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kStretches = 48, kFewest = 5;

int rank_of(const Results& results, const Tuned& tuned) {
  const Verdict* verdict = verdict_of(results, tuned.scheme);
  return verdict != nullptr && verdict->rank > 0 ? verdict->rank : std::numeric_limits<int>::max();
}

std::optional<double> given(const Results& results, std::optional<double> TaskFacts::*member) {
  if (!results.task) return std::nullopt;
  const std::optional<double> value = (*results.task).*member;
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// A noisy curve as means over stretches of equal length; the last step of each stands for it.
LossCurve smoothed(const LossCurve& curve) {
  if (curve.step.size() <= kStretches) return curve;
  LossCurve made;
  for (std::size_t i = 0; i < kStretches; ++i) {
    const std::size_t from = i * curve.step.size() / kStretches, to = (i + 1) * curve.step.size() / kStretches;
    double sum = 0;
    for (std::size_t k = from; k < to; ++k) sum += curve.loss[k];
    made.step.push_back(curve.step[to - 1]);
    made.loss.push_back(sum / static_cast<double>(to - from));
  }
  return made;
}

}  // namespace

std::optional<double> optimum_of(const Results& results) { return given(results, &TaskFacts::optimum); }
std::optional<double> guessing_of(const Results& results) { return given(results, &TaskFacts::unigram); }

bool is_trained(const Results& results) { return results.kind == ResultsKind::inspect && !results.config.empty(); }

const Verdict* verdict_of(const Results& results, const std::string& scheme) {
  for (const Verdict& one : results.verdicts) {
    if (one.scheme == scheme) return &one;
  }
  return nullptr;
}

std::vector<const Tuned*> tuned_in_order(const Results& results) {
  std::vector<const Tuned*> all;
  for (const Tuned& one : results.tuned) all.push_back(&one);
  const auto loss = [](const Tuned* one) {
    return one->loss.n > 0 && std::isfinite(one->loss.mean) ? one->loss.mean : 1e300;
  };
  std::stable_sort(all.begin(), all.end(), [&](const Tuned* a, const Tuned* b) {
    const int first = rank_of(results, *a), second = rank_of(results, *b);
    return first != second ? first < second : loss(a) < loss(b);
  });
  return all;
}

std::string row_name(const Results& results, const Cast& cast, const Tuned& tuned) {
  bool depths = false;
  for (const Tuned& one : results.tuned) depths = depths || one.layers != tuned.layers;
  std::string name = cast.of(tuned.scheme).label;
  if (depths) name += ", " + draw::counted(tuned.layers, "layer", "layers");
  return tuned.rest.empty() ? name : name + ", " + tuned.rest;
}

const StabilityMap* map_of(const Results& results, const Tuned& tuned) {
  for (const StabilityMap& map : results.maps) {
    if (map.scheme == tuned.scheme && map.layers == tuned.layers && map.rest == tuned.rest && map.y_name == "warmup")
      return &map;
  }
  return nullptr;
}

std::string map_name(const Results& results, const Cast& cast, const StabilityMap& map) {
  bool depths = false;
  for (const StabilityMap& other : results.maps)
    depths = depths || (other.y_name == map.y_name && other.layers != map.layers);
  std::string name = cast.of(map.scheme).label;
  if (depths) name += ", " + draw::counted(map.layers, "layer", "layers");
  return map.rest.empty() ? name : name + ", " + map.rest;
}

std::string_view mapped_runs(const Results& results) {
  return results.kind == ResultsKind::study ? "short runs" : "runs";
}

std::string loss_unit(const Results& results) {
  return results.task && !results.task->unit.empty() ? results.task->unit : "nats";
}

double most_shown(const Results& results) {
  const std::optional<double> guessing = guessing_of(results);
  return guessing ? 1.25 * *guessing : std::numeric_limits<double>::infinity();
}

std::string beyond_words(const Results& results, const std::vector<draw::Line>& lines, double most) {
  const bool beyond = std::ranges::any_of(lines, [&](const draw::Line& line) {
    return std::ranges::any_of(line.y, [&](double loss) { return loss > most; });
  });
  return beyond ? fmt::format(" What loses much more than {} is drawn at the top.", guessing_deed(results)) : "";
}

std::string right_answers(const Estimate& accuracy) {
  const std::string mean = fmt::format("{:.1f}\u00a0%", 100 * accuracy.mean);  // no line ends between them
  return accuracy.low == accuracy.high  // of runs of older versions, which counted no records
             ? mean + " right"
             : fmt::format("{} ({:.1f} to {:.1f}) right", mean, 100 * accuracy.low, 100 * accuracy.high);
}

std::string_view guessing_word(const Results& results) {
  return loss_unit(results) == "nats" ? "guessing" : "the mean";
}

std::string_view guessing_deed(const Results& results) {
  return loss_unit(results) == "nats" ? "guessing" : "predicting the mean";
}

double LossLevels::level(double loss) const {
  return std::isfinite(loss) ? std::clamp((loss - best) / (worst - best), 0.0, 1.0) : kUnknown;
}

LossLevels loss_levels(const Results& results) {
  LossLevels levels{.best = 1e300, .worst = -1e300};
  for (const StabilityMap& map : results.maps) {
    for (const std::vector<Estimate>& row : map.loss) {
      for (const Estimate& cell : row) {
        if (cell.n < 1 || !std::isfinite(cell.mean)) continue;
        levels.best = std::min(levels.best, cell.mean);
        levels.worst = std::max(levels.worst, cell.mean);
      }
    }
  }
  levels.worst = guessing_of(results).value_or(levels.worst);
  if (!(levels.worst > levels.best)) levels.best = levels.worst - 1;  // nothing is better than guessing
  return levels;
}

// Longer runs than those of the map have a longer warmup; in the map it is the longest one.
double mapped_warmup(const StabilityMap& map, const Tuned& tuned) {
  const auto warmup = static_cast<double>(tuned.warmup);
  const bool longer = map.y_name == "warmup" && warmup > 0 && !map.y.empty() && std::ranges::max(map.y) > 0 &&
                      std::ranges::find(map.y, warmup) == map.y.end();
  return longer ? std::ranges::max(map.y) : warmup;
}

draw::Heat heat_of(const Results& results, const StabilityMap& map, const Cast& cast, const LossLevels& levels) {
  const CastMember& member = cast.of(map.scheme);
  draw::Heat heat{.title = map_name(results, cast, map),
                  .scheme = cast.index(map.scheme),
                  .tone = member.tone == draw::Tone::rest ? draw::Tone::ink : member.tone,
                  .x = {},
                  .y = {},
                  .cells = {}};
  for (const double lr : map.lr) heat.x.push_back(draw::plain(lr));
  for (const double y : map.y) heat.y.push_back(draw::plain(y));
  const auto chosen = [&](double lr, double y) {
    return std::any_of(results.tuned.begin(), results.tuned.end(), [&](const Tuned& one) {
      const bool by_depth = map.y_name == "layers";
      const double layers = by_depth ? y : static_cast<double>(map.layers),
                   warmup = by_depth ? static_cast<double>(map.warmup) : y;
      return one.scheme == map.scheme && one.rest == map.rest && one.lr == lr &&
             static_cast<double>(one.layers) == layers && mapped_warmup(map, one) == warmup;
    });
  };
  for (std::size_t row = 0; row < std::min(map.loss.size(), map.y.size()); ++row) {
    std::vector<draw::HeatCell>& cells = heat.cells.emplace_back();
    for (std::size_t column = 0; column < std::min(map.loss[row].size(), map.lr.size()); ++column) {
      const Estimate& loss = map.loss[row][column];
      const double lost =
          row < map.diverged.size() && column < map.diverged[row].size() ? map.diverged[row][column] : kUnknown;
      draw::HeatCell cell{.level = loss.n > 0 ? levels.level(loss.mean) : kUnknown,
                          .diverged = std::isfinite(lost) ? lost : 0,
                          .best = chosen(map.lr[column], map.y[row])};
      cell.tip = fmt::format("{}, peak rate {}, {} {}: {}", member.label, heat.x[column], map.y_name, heat.y[row],
                             cell.diverged >= 1 ? "every seed diverged"
                             : loss.n > 0 ? fmt::format("loss of {} {}", mapped_runs(results), draw::loss_text(loss))
                                          : "not run");
      if (cell.diverged > 0 && cell.diverged < 1)
        cell.tip += fmt::format(", {:.0f} % of seeds diverged", 100 * cell.diverged);
      cells.push_back(std::move(cell));
    }
  }
  std::erase_if(heat.cells, [](const std::vector<draw::HeatCell>& row) { return row.empty(); });
  return heat;
}

MeanCurve mean_curve(const std::vector<const RunOutcome*>& runs) {
  MeanCurve made;
  made.held_out = !runs.empty() && std::all_of(runs.begin(), runs.end(), [](const RunOutcome* run) {
    return run->evaluations.step.size() >= kFewest;
  });
  std::map<std::int64_t, std::vector<double>> by_step;
  for (const RunOutcome* run : runs) {
    const LossCurve curve = made.held_out ? run->evaluations : smoothed(run->curve);
    for (std::size_t i = 0; i < std::min(curve.step.size(), curve.loss.size()); ++i) {
      if (std::isfinite(curve.loss[i])) by_step[curve.step[i]].push_back(curve.loss[i]);
    }
  }
  made.seeds = static_cast<int>(runs.size());
  for (const auto& [step, losses] : by_step) {
    if (losses.size() != runs.size()) continue;
    const Estimate mean = estimate_of(losses);
    made.step.push_back(static_cast<double>(step));
    made.mean.push_back(mean.mean);
    made.low.push_back(mean.low);
    made.high.push_back(mean.high);
  }
  if (made.seeds < 2) made.low.clear(), made.high.clear();
  return made;
}

}  // namespace norma
