// Outcomes in parts: by learning rate, warmup and seed.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "norma/lab/sweep_results.h"

namespace norma {

template <typename Key>
std::map<Key, Outcomes> by(const Outcomes& runs, const std::function<Key(const RunOutcome&)>& key) {
  std::map<Key, Outcomes> parts;
  for (const RunOutcome& run : runs) parts[key(run)].push_back(run);
  return parts;
}

inline std::map<double, Outcomes> by_lr(const Outcomes& runs) {
  return by<double>(runs, [](const RunOutcome& run) { return run.lr; });
}
inline std::map<std::int64_t, Outcomes> by_warmup(const Outcomes& runs) {
  return by<std::int64_t>(runs, [](const RunOutcome& run) { return run.warmup; });
}
inline std::map<std::int64_t, Outcomes> by_seed(const Outcomes& runs) {
  return by<std::int64_t>(runs, [](const RunOutcome& run) { return run.seed; });
}

// The mean loss of a setting, infinite when a seed diverged or was stopped.
inline double setting_loss(const Outcomes& runs) {
  double sum = 0;
  for (const RunOutcome& run : runs) sum += run.loss();
  return runs.empty() || std::isnan(sum) ? std::numeric_limits<double>::infinity()
                                         : sum / static_cast<double>(runs.size());
}

}  // namespace norma
