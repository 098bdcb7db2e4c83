// Intervals of shares of right answers over seeds and over the records that happened to be held out. docs/study.md,
// "Right answers", has the formulas.
#pragma once

#include <optional>
#include <span>

#include "norma/core/share.h"
#include "norma/lab/statistics.h"

namespace norma {

// Of models that differ in their seeds, each judged on the same records of which only their number is known: n models
// with mean p have the variance of their shares over n, plus p (1 - p) / records. That is at least the variance of the
// mean, because each record weighs as if all models agreed on it. One model: its records alone.
std::optional<Estimate> mean_share(std::span<const RightShare> models);

// The same where it is known which model answered what: right[seed][record] is 0 or 1. As for losses, but within 0 and
// 1, and for one seed over records.
Estimate share_of(const LossTable& right, double alpha = 0.05);

}  // namespace norma
