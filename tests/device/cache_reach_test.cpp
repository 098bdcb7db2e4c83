#include "device/cpu/cache_reach.h"

#include <gtest/gtest.h>

#include "norma/core/machine.h"

namespace norma {
namespace {

TEST(CacheReach, IsMeasuredOnlyWhereTheSizesLeaveItOpen) {
  EXPECT_FALSE(outgrows_cache(1));
  EXPECT_FALSE(outgrows_cache(kNeverStreamed));
  EXPECT_TRUE(outgrows_cache(2 * machine().last_level_cache + kNeverStreamed + 1));
}

TEST(CacheReach, LiesBetweenTheSizesThatWereTried) {
  constexpr std::int64_t kMost = std::int64_t{16} << 20;
  const std::int64_t reach = measure_cache_reach(kMost);
  EXPECT_GE(reach, kNeverStreamed);
  EXPECT_LE(reach, kMost);
  EXPECT_EQ(measure_cache_reach(kNeverStreamed), kNeverStreamed);  // nothing is left to try
}

}  // namespace
}  // namespace norma
