#include "norma/train/detector.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace norma {
namespace {

// By how much noise alone may put a rolling median above one loss, and above another such median, in deviations of
// single losses; and the most that is allowed for, in nats: an oscillation that grows from the first step on has no
// other noise to be told from.
constexpr double kAboveOneLoss = 5, kAboveOneMedian = 2, kMostNoise = 4;

}  // namespace

std::string_view name_of(Astray why) {
  switch (why) {
    case Astray::not_finite: return "not finite";
    case Astray::gradient_not_finite: return "gradient not finite";
    case Astray::risen: return "above its start";
    case Astray::spiked: return "spike without recovery";
  }
  return "?";
}

std::optional<Astray> Detector::watch(double loss, double gradient_norm) {
  if (!std::isfinite(loss)) return Astray::not_finite;
  if (!std::isfinite(gradient_norm)) return Astray::gradient_not_finite;
  if (watched_++ == 0) first_loss_ = loss;
  const bool was_full = full();
  // Before spikes: a loss that climbs from the first step on is above any median, and would pass for one long spike.
  if (risen()) return Astray::risen;
  if (config_.spike > 0 && was_full && loss > median() + config_.spike) {
    if (++spike_steps_ == 1) ++spikes_;
    // Losses of a spike do not move the median: a new, worse level must not become the new normal.
    return spike_steps_ >= config_.patience ? std::optional(Astray::spiked) : std::nullopt;
  }
  spike_steps_ = 0;
  if (was_full) window_.erase(window_.begin());
  window_.push_back(loss);
  if (!start_ && full() && watched_ == config_.window) start_ = Start{median(), noise()};
  if (was_full && risen()) return Astray::risen;
  return std::nullopt;
}

// The first loss is that of one batch, and of a small one may lie far below what it is a draw of.
bool Detector::risen() const {
  if (config_.rise <= 0 || !full()) return false;
  const double now = median();
  if (!(now > first_loss_ + config_.rise)) return false;
  const Start start = start_.value_or(Start{.median = first_loss_});
  return now > first_loss_ + config_.rise + std::min(kMostNoise, kAboveOneLoss * start.noise) ||
         now > start.median + config_.rise + std::min(kMostNoise, kAboveOneMedian * start.noise);
}

// A climb alone takes no step down, so what goes down is noise: of independent normal losses the mean step down, zeros
// counted, is deviation / sqrt(pi).
double Detector::noise() const {
  double down = 0;
  for (std::size_t i = 1; i < window_.size(); ++i) down += std::max(0.0, window_[i - 1] - window_[i]);
  return window_.size() < 2 ? 0 : down / static_cast<double>(window_.size() - 1) * std::sqrt(std::numbers::pi);
}

bool Detector::in_doubt() const { return spike_steps_ > 0 || (config_.rise > 0 && full() && median() > first_loss_); }

void Detector::restart() {
  window_.clear();
  spike_steps_ = 0;
}

double Detector::median() const {
  if (window_.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted = window_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

void Detector::restore(const State& state) {
  window_ = state.window;
  first_loss_ = state.first_loss;
  start_ = state.start;
  watched_ = state.watched;
  spikes_ = state.spikes;
  spike_steps_ = state.spike_steps;
}

}  // namespace norma
