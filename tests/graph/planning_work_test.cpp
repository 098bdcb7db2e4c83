// Planning grows linearly with depth, in counted work: the basic blocks of src/graph that run. This program is linked
// with a copy of that folder which calls __sanitizer_cov_trace_pc at each of them.
#include <gtest/gtest.h>

#include <cstdint>

#include "norma/train/step.h"

namespace {
std::int64_t blocks = 0;
}  // namespace

extern "C" void __sanitizer_cov_trace_pc() { ++blocks; }

namespace norma {
namespace {

std::int64_t work_of_planning(std::int64_t layers, const std::string& scheme, int recompute_every) {
  const ModelConfig config{
      .layers = layers, .width = 8, .heads = 2, .vocabulary = 11, .batch = 1, .time = 4, .scheme = scheme};
  const std::int64_t before = blocks;
  const TrainingStep step = build_training_step(config, {.recompute_every = recompute_every});
  EXPECT_GT(step.plan->steps().size(), static_cast<std::size_t>(10 * layers));
  return blocks - before;
}

struct PlannedStep {
  const char* scheme;
  int recompute_every;
};

TEST(Planning, WorkGrowsLinearlyWithDepth) {
  for (const auto& [scheme, recompute_every] : {PlannedStep{"pre", 0}, {"deepnorm", 25}}) {
    const std::int64_t once = work_of_planning(1000, scheme, recompute_every);
    const std::int64_t twice = work_of_planning(2000, scheme, recompute_every);
    EXPECT_GT(once, 1000 * 100) << "it counts";
    // Twice the depth is twice the work, and a little for what is sorted; four times would be quadratic.
    EXPECT_LT(static_cast<double>(twice) / static_cast<double>(once), 2.5) << scheme;
  }
}

}  // namespace
}  // namespace norma
