#include "norma/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "norma/core/words.h"

namespace norma {
namespace {

constexpr Word<ScheduleShape> kShapes[] = {
    {"constant", ScheduleShape::constant}, {"inverse_sqrt", ScheduleShape::inverse_sqrt},
    {"cosine", ScheduleShape::cosine},     {"linear", ScheduleShape::linear},
    {"step", ScheduleShape::step},         {"wsd", ScheduleShape::wsd},
    {"ramp", ScheduleShape::ramp},
};

// From 0 at the end of the warmup to 1 at the end of the run.
double progress(const ScheduleConfig& config, double step) {
  const double start = static_cast<double>(config.warmup), end = static_cast<double>(config.steps);
  return end <= start ? 1 : std::clamp((step - start) / (end - start), 0.0, 1.0);
}

double shape_factor(const ScheduleConfig& config, double step) {
  const double floor = config.floor;
  switch (config.shape) {
    case ScheduleShape::constant: return 1;
    case ScheduleShape::inverse_sqrt: {
      const double start = std::max(1.0, static_cast<double>(config.warmup));
      return std::sqrt(start / std::max(step, start));
    }
    case ScheduleShape::cosine:
      return floor + (1 - floor) * 0.5 * (1 + std::cos(std::numbers::pi * progress(config, step)));
    case ScheduleShape::linear: return 1 - (1 - floor) * progress(config, step);
    case ScheduleShape::step: {
      const double every = static_cast<double>(config.step_every > 0 ? config.step_every : (config.steps + 2) / 3);
      return std::pow(config.step_factor, std::floor((step - 1) / every));
    }
    case ScheduleShape::ramp: return std::min(1.0, step / std::max(1.0, static_cast<double>(config.steps)));
    case ScheduleShape::wsd: {
      const double end = static_cast<double>(config.steps), start = end * (1 - config.cooldown);
      if (step <= start || end <= start) return 1;
      return 1 - (1 - floor) * std::min(1.0, (step - start) / (end - start));
    }
  }
  return 1;
}

}  // namespace

std::string_view name_of(ScheduleShape shape) { return word_for(std::span(kShapes), shape); }
ScheduleShape schedule_shape(std::string_view name) { return from_word(std::span(kShapes), name, "schedule"); }
std::vector<std::string> schedule_shapes() { return words_of(std::span(kShapes)); }

double schedule_factor(const ScheduleConfig& config, std::int64_t step) {
  const double at = static_cast<double>(std::max<std::int64_t>(1, step));
  const double warmup = static_cast<double>(config.warmup);
  const double rise = config.warmup > 0 ? std::min(1.0, at / warmup) : 1;
  return rise * shape_factor(config, at);
}

}  // namespace norma
