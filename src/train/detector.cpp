#include "norma/train/detector.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace norma {

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
  const bool full = static_cast<std::int64_t>(window_.size()) >= config_.window;
  const auto risen = [&] { return config_.rise > 0 && full && median() > first_loss_ + config_.rise; };
  // Before spikes: a loss that climbs from the first step on is above any median, and would pass for one long spike.
  if (risen()) return Astray::risen;
  if (config_.spike > 0 && full && loss > median() + config_.spike) {
    if (++spike_steps_ == 1) ++spikes_;
    // Losses of a spike do not move the median: a new, worse level must not become the new normal.
    return spike_steps_ >= config_.patience ? std::optional(Astray::spiked) : std::nullopt;
  }
  spike_steps_ = 0;
  if (full) window_.erase(window_.begin());
  window_.push_back(loss);
  if (risen()) return Astray::risen;
  return std::nullopt;
}

bool Detector::in_doubt() const {
  const bool full = static_cast<std::int64_t>(window_.size()) >= config_.window;
  return spike_steps_ > 0 || (config_.rise > 0 && full && median() > first_loss_);
}

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
  watched_ = state.watched;
  spikes_ = state.spikes;
  spike_steps_ = state.spike_steps;
}

}  // namespace norma
