// What the settings of a map say of a scheme: which is best, whether it trains, and where to look further.
#include <fmt/format.h>

#include <algorithm>

#include "lab/study/verdict.h"

namespace norma {
namespace {

constexpr double kSmallestRate = 1e-12, kLargestRate = 1e6;  // beyond them a run is not worth its time

}  // namespace

const TrainedCell* least_bad_cell(const SchemeEvidence& evidence) {
  const TrainedCell* best = nullptr;
  for (const TrainedCell& cell : evidence.cells) {
    if (cell.diverged > 0 || cell.faulty > 0 || cell.loss.n == 0) continue;
    if (best == nullptr || cell.loss.mean < best->loss.mean) best = &cell;
  }
  return best;
}

const TrainedCell* best_cell(const SchemeEvidence& evidence) {
  const TrainedCell* best = nullptr;
  for (const TrainedCell& cell : evidence.cells) {
    if (cell.trains() && (best == nullptr || cell.loss.mean < best->loss.mean)) best = &cell;
  }
  return best;
}

const TrainedCell* best_cell(const SchemeEvidence& evidence, bool with_warmup) {
  const TrainedCell* best = nullptr;
  for (const TrainedCell& cell : evidence.cells) {
    if (!cell.trains() || (cell.warmup > 0) != with_warmup) continue;
    if (best == nullptr || cell.loss.mean < best->loss.mean) best = &cell;
  }
  return best;
}

bool diverges_at_once(const SchemeEvidence& evidence) {
  return !evidence.cells.empty() && std::ranges::all_of(evidence.cells, [](const TrainedCell& cell) {
    return cell.runs > 0 && cell.at_once == cell.runs;
  });
}

Training training_of(const SchemeEvidence& evidence) {
  if (evidence.training) return *evidence.training;
  if (evidence.cells.empty()) return Training::untested;
  if (best_cell(evidence) != nullptr) return Training::trains;
  return least_bad_cell(evidence) == nullptr ? Training::diverges : Training::unclear;
}

RateEdge edge_of_best(const SchemeEvidence& evidence) {
  if (evidence.cells.empty()) return RateEdge::none;
  const auto [low, high] = std::minmax_element(evidence.cells.begin(), evidence.cells.end(),
                                               [](const TrainedCell& a, const TrainedCell& b) { return a.lr < b.lr; });
  if (low->lr == high->lr) return RateEdge::none;
  const TrainedCell* best = best_cell(evidence) != nullptr ? best_cell(evidence) : least_bad_cell(evidence);
  if (best == nullptr) return diverges_at_once(evidence) ? RateEdge::none : RateEdge::smallest;
  return best->lr == high->lr ? RateEdge::largest : best->lr == low->lr ? RateEdge::smallest : RateEdge::none;
}

std::optional<double> rate_beyond(const std::vector<double>& rates, RateEdge edge) {
  if (edge == RateEdge::none || rates.size() < 2) return std::nullopt;
  const bool up = edge == RateEdge::largest;
  const auto inwards = [&](std::size_t i) { return up ? rates[rates.size() - 1 - i] : rates[i]; };
  // The ratio before the last one: grids such as 1, 3, 10, 30 alternate between two.
  const double ratio = rates.size() > 2 ? inwards(1) / inwards(2) : inwards(0) / inwards(1);
  for (const int digits : {2, 6}) {  // 0.033 is as good as 0.0333333, unless the grid is that fine
    const double rate = std::stod(fmt::format("{:.{}g}", inwards(0) * ratio, digits));
    if (up ? rate > inwards(0) && rate <= kLargestRate : rate < inwards(0) && rate > kSmallestRate) return rate;
  }
  return std::nullopt;
}

}  // namespace norma
