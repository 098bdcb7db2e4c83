// Effective depth: from losses with k layers to one number (docs/analyses.md).
#include <algorithm>
#include <cmath>

#include "norma/core/error.h"
#include "norma/lab/depth_use.h"
#include "norma/train/result.h"

namespace norma {
namespace {

// Over all batches but one; with `left_out` beyond the last, over all.
double mean_without(const std::vector<double>& values, std::size_t left_out) {
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == left_out) continue;
    sum += values[i];
    ++count;
  }
  return sum / count;
}

}  // namespace

double crossing_depth(const std::vector<double>& loss_by_layers, double bound) {
  NORMA_ASSERT(!loss_by_layers.empty());
  for (std::size_t k = 0; k < loss_by_layers.size(); ++k) {
    if (!(loss_by_layers[k] <= bound)) continue;
    if (k == 0) return 0;
    const double before = loss_by_layers[k - 1], here = loss_by_layers[k];
    return std::isfinite(before) ? static_cast<double>(k - 1) + (before - bound) / (before - here)
                                 : static_cast<double>(k);
  }
  return static_cast<double>(loss_by_layers.size() - 1);
}

std::optional<double> effective_depth(const std::vector<double>& loss_by_layers, double guessing) {
  const double whole = loss_by_layers.back(), zero = std::isfinite(guessing) ? guessing : loss_by_layers.front();
  if (!(whole <= zero - kLearned)) return std::nullopt;
  // Worse than guessing is no less than nothing: how much worse must not move where the curve crosses.
  std::vector<double> curve = loss_by_layers;
  for (double& loss : curve) loss = std::isnan(loss) ? zero : std::min(loss, zero);
  return crossing_depth(curve, whole + DepthUse::kTolerance * (zero - whole));
}

Estimate effective_depth_over_batches(const std::vector<std::vector<double>>& losses,
                                      const std::vector<double>& guessing) {
  const std::size_t batches = guessing.size();
  const auto depth_without = [&](std::size_t left_out) {
    std::vector<double> by_layers;
    for (const std::vector<double>& one : losses) by_layers.push_back(mean_without(one, left_out));
    return effective_depth(by_layers, mean_without(guessing, left_out)).value_or(0);
  };
  const double whole = depth_without(batches);
  if (batches < 2) return {whole, whole, whole, 1};
  const auto n = static_cast<double>(batches);
  std::vector<double> pseudo;
  for (std::size_t batch = 0; batch < batches; ++batch) pseudo.push_back(n * whole - (n - 1) * depth_without(batch));
  Estimate depth = estimate_of(pseudo);
  const double half = depth.high - depth.mean, most = static_cast<double>(losses.size() - 1);
  depth.mean = whole;  // not the jackknife's own, which may leave the model
  depth.low = std::clamp(whole - half, 0.0, most);
  depth.high = std::clamp(whole + half, 0.0, most);
  return depth;
}

}  // namespace norma
