#include "cli/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/table.h"
#include "cli/terminal.h"

namespace norma::cli {
namespace {

constexpr std::size_t kWidestName = 40;
constexpr const char* kShades[] = {"█", "▓", "▒", "░"};  // from the best loss to the worst

std::string spread(const Estimate& e, int digits) {
  if (e.n == 0) return "-";
  if (e.n == 1) return fmt::format("{:.{}f}", e.mean, digits);
  return fmt::format("{:.{}f} ± {:.{}f}", e.mean, digits, e.high - e.mean, digits);
}

// Its interval, over seeds and held-out records, is not the same on both sides.
std::string share_text(const Estimate& share) {
  if (share.low == share.high) return fmt::format("{:.3f}", share.mean);
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", share.mean, share.low, share.high);
}

std::string rate_text(const StableRate& rate) {
  if (!rate.high) return "-";  // nothing was run
  if (!rate.lr) return "none";
  return fmt::format("{}{:.1e}", rate.beyond ? "≥ " : "", *rate.lr);
}

std::string shortened(const std::string& name) {
  return name.size() <= kWidestName ? name : name.substr(0, kWidestName - 3) + "...";
}

std::string tuned_table(const std::vector<Tuned>& all) {
  Table table;
  table.column({.title = "scheme", .left = true});
  const bool judged = std::ranges::any_of(all, [](const Tuned& one) { return one.accuracy.has_value(); });
  for (const char* heading : {"lr", "warmup", "loss"}) table.column({.title = heading});
  if (judged) table.column({.title = "accuracy"});
  for (const char* heading : {"stable lr", "no warmup", "sensitivity", "needs warmup", "diverged"})
    table.column({.title = heading});
  for (const Tuned& one : all) {
    std::vector<std::string> cells = {shortened(Contest{one.scheme, one.layers, one.rest, {}}.name()),
                                      one.lr ? fmt::format("{:.1e}", *one.lr) : "-",
                                      one.lr ? fmt::format("{}", one.warmup) : "-", spread(one.loss, 4)};
    if (judged) cells.push_back(one.accuracy ? share_text(*one.accuracy) : "-");
    for (const std::string& cell :
         {rate_text(one.with_warmup), rate_text(one.without_warmup),
          one.sensitivity ? spread(*one.sensitivity, 3) : "-",
          one.needs_warmup ? fmt::format("{}", *one.needs_warmup) : "-", fmt::format("{:.0f} %", 100 * one.diverged)})
      cells.push_back(cell);
    table.add(cells);
  }
  return table.folded(output_columns());
}

std::string shade(const Estimate& loss, double diverged, double best, double worst) {
  if (std::isnan(diverged)) return " ";
  if (diverged == 1) return "×";
  if (diverged > 0) return "÷";
  if (loss.n == 0) return "-";
  const double share = worst > best ? (loss.mean - best) / (worst - best) : 0;
  return kShades[std::min<std::size_t>(3, static_cast<std::size_t>(share * 4))];
}

std::string map_text(const StabilityMap& map) {
  double best = std::numeric_limits<double>::infinity(), worst = -best;
  for (std::size_t y = 0; y < map.y.size(); ++y) {
    for (std::size_t x = 0; x < map.lr.size(); ++x) {
      if (map.loss[y][x].n == 0 || map.diverged[y][x] > 0) continue;
      best = std::min(best, map.loss[y][x].mean);
      worst = std::max(worst, map.loss[y][x].mean);
    }
  }
  const std::string where = map.y_name == "layers"
                                ? fmt::format(", warmup {}", map.warmup)
                                : fmt::format(", {} layer{}", map.layers, map.layers == 1 ? "" : "s");
  std::string text = fmt::format("\n{}{}{}{}: loss by learning rate and {}\n", shortened(map.scheme), where,
                                 map.rest.empty() ? "" : ", ", map.rest, map.y_name);
  text += fmt::format("{:>8} ", map.y_name);
  for (const double lr : map.lr) text += fmt::format(" {:>7.0e}", lr);
  text += "\n";
  for (std::size_t y = map.y.size(); y-- > 0;) {
    text += fmt::format("{:>8} ", map.y[y]);
    for (std::size_t x = 0; x < map.lr.size(); ++x)
      text += fmt::format(" {:>7}", shade(map.loss[y][x], map.diverged[y][x], best, worst));
    text += "\n";
  }
  if (std::isfinite(best)) text += fmt::format("{:>8}  █ {:.3f} ... ░ {:.3f}", "", best, worst);
  return text + "   × diverged  ÷ some seeds  - stopped early or not counted\n";
}

std::string ramp_table(const std::vector<RampLimit>& limits) {
  if (limits.empty()) return "";
  Table table;
  table.column({.title = "ramp", .left = true});
  table.column({.title = "learning rate before divergence", .left = true});
  for (const RampLimit& one : limits)
    table.add({shortened(Contest{one.scheme, one.layers, one.rest, {}}.name()),
               fmt::format("{}{:.2e}{}", one.beyond ? "≥ " : "", one.lr.mean,
                           one.lr.n > 1 ? fmt::format(" ± {:.1e}", one.lr.high - one.lr.mean) : "")});
  return "\n" + table.folded(output_columns());
}

std::string depth_table(const std::vector<DepthEfficiency>& all) {
  if (all.empty()) return "";
  Table table;
  table.column({.title = "depth", .left = true});
  table.column({.title = "loss per doubling"});
  table.column({.title = "useful layers", .left = true});
  for (const DepthEfficiency& one : all)
    table.add({shortened(one.scheme + (one.rest.empty() ? "" : ", " + one.rest)),
               one.gain_per_doubling ? spread(*one.gain_per_doubling, 4) : "-",
               fmt::format("{} of {}", one.useful_layers,
                           std::llround(static_cast<double>(one.useful_layers) / one.useful_share))});
  return "\n" + table.folded(output_columns());
}

}  // namespace

std::string sweep_tables(const Outcomes& outcomes) {
  const std::vector<Tuned> best = tuned(outcomes);
  std::string text = best.empty() ? "" : tuned_table(best);
  for (const StabilityMap& map : stability_maps(outcomes)) text += map_text(map);
  text += ramp_table(ramp_limits(outcomes)) + depth_table(depth_efficiency(best));
  const auto waiting = std::count_if(outcomes.begin(), outcomes.end(),
                                     [](const RunOutcome& run) { return run.status == RunStatus::waiting; });
  for (const std::string& note : fault_notes(outcomes)) text += "\n" + note + "\n";
  if (waiting > 0) text += fmt::format("\n{} of {} runs have not ended\n", waiting, outcomes.size());
  return text + "\n";
}

}  // namespace norma::cli
