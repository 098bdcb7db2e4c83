// Learning-rate schedules at their corners and in between.
#include "norma/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "check.h"

namespace norma {
namespace {

double at(ScheduleConfig config, std::int64_t step) { return schedule_factor(config, step); }

TEST(Schedule, WarmupRisesLinearlyToThePeak) {
  for (const std::string& name : schedule_shapes()) {
    if (name == "step" || name == "ramp") continue;
    ScheduleConfig config{.shape = schedule_shape(name), .warmup = 100, .steps = 1000};
    EXPECT_NEAR(at(config, 1), 0.01, 1e-12) << name;
    EXPECT_NEAR(at(config, 50), 0.5, 1e-12) << name;
    EXPECT_NEAR(at(config, 100), 1, 1e-12) << name;
    EXPECT_LE(at(config, 101), 1) << name;
    config.warmup = 0;
    EXPECT_NEAR(at(config, 1), 1, 0.01) << name;
  }
}

TEST(Schedule, EndsWhereItShould) {
  const auto end = [](ScheduleShape shape) {
    return at({.shape = shape, .warmup = 10, .steps = 1000, .floor = 0.1}, 1000);
  };
  EXPECT_NEAR(end(ScheduleShape::constant), 1, 1e-12);
  EXPECT_NEAR(end(ScheduleShape::cosine), 0.1, 1e-12);
  EXPECT_NEAR(end(ScheduleShape::linear), 0.1, 1e-12);
  EXPECT_NEAR(end(ScheduleShape::wsd), 0.1, 1e-12);
  EXPECT_NEAR(end(ScheduleShape::ramp), 1, 1e-12);
  EXPECT_NEAR(end(ScheduleShape::inverse_sqrt), std::sqrt(10.0 / 1000), 1e-12);
  EXPECT_NEAR(at({.shape = ScheduleShape::cosine, .steps = 1000, .floor = 0.1}, 5000), 0.1, 1e-12) << "beyond the end";
}

TEST(Schedule, ShapesInBetween) {
  EXPECT_NEAR(at({.shape = ScheduleShape::ramp, .steps = 1000}, 1), 0.001, 1e-12);
  EXPECT_NEAR(at({.shape = ScheduleShape::ramp, .steps = 1000}, 250), 0.25, 1e-12);
  EXPECT_NEAR(at({.shape = ScheduleShape::cosine, .warmup = 0, .steps = 1000, .floor = 0}, 500), 0.5, 1e-12);
  EXPECT_NEAR(at({.shape = ScheduleShape::linear, .warmup = 0, .steps = 1000, .floor = 0.5}, 500), 0.75, 1e-12);
  const ScheduleConfig wsd{.shape = ScheduleShape::wsd, .steps = 1000, .floor = 0, .cooldown = 0.2};
  EXPECT_EQ(at(wsd, 800), 1);
  EXPECT_NEAR(at(wsd, 900), 0.5, 1e-12);
  // Two drops, whatever the length.
  const ScheduleConfig thirds{.shape = ScheduleShape::step, .steps = 20, .step_factor = 0.5};
  EXPECT_EQ(at(thirds, 7), 1);
  EXPECT_EQ(at(thirds, 8), 0.5);
  EXPECT_EQ(at(thirds, 20), 0.25);
  const ScheduleConfig step{.shape = ScheduleShape::step, .steps = 1000, .step_every = 100, .step_factor = 0.5};
  EXPECT_EQ(at(step, 100), 1);
  EXPECT_EQ(at(step, 101), 0.5);
  EXPECT_EQ(at(step, 301), 0.125);
}

TEST(Schedule, UnknownNamesSuggestTheNearest) {
  EXPECT_EQ(test::error_of([] { schedule_shape("cosin"); }),
            "there is no schedule 'cosin' (did you mean 'cosine'?); expected constant, inverse_sqrt, cosine, linear, "
            "step, wsd, ramp");
}

}  // namespace
}  // namespace norma
