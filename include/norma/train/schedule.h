// Learning-rate schedules: a linear warmup times a shape, as a factor on the peak rate. The shape `ramp` rises linearly
// over the whole run, to find the rate at which a model diverges.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace norma {

enum class ScheduleShape { constant, inverse_sqrt, cosine, linear, step, wsd, ramp };

struct ScheduleConfig {
  ScheduleShape shape = ScheduleShape::cosine;
  std::int64_t warmup = 0;      // steps of linear rise; the rate of step `warmup` is the peak
  std::int64_t steps = 1000;    // of the whole run; where cosine, linear, wsd and ramp end
  double floor = 0.1;           // where cosine, linear and wsd end, as a share of the peak
  std::int64_t step_every = 0;  // step: multiply by `step_factor` so often; 0: a third of the run, rounded up
  double step_factor = 0.1;
  double cooldown = 0.2;  // wsd: the share of the run that falls linearly at the end
};

std::string_view name_of(ScheduleShape shape);
ScheduleShape schedule_shape(std::string_view name);  // throws Error naming the nearest
std::vector<std::string> schedule_shapes();

// The factor at a step, counted from 1. Defined for every step, also beyond the end of the run.
double schedule_factor(const ScheduleConfig& config, std::int64_t step);

}  // namespace norma
