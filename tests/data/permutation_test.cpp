// The order of windows: a permutation for every size, another one for every seed and epoch.
#include "data/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace norma {
namespace {

TEST(Permutation, VisitsEverythingOnce) {
  for (const std::uint64_t size : {1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 64, 255, 257, 1000, 4097}) {
    for (const std::uint64_t epoch : {0, 1, 77}) {
      const Permutation permutation(size, 5, epoch);
      std::set<std::uint64_t> seen;
      for (std::uint64_t i = 0; i < size; ++i) seen.insert(permutation(i));
      EXPECT_EQ(seen.size(), size);
      EXPECT_EQ(*seen.rbegin(), size - 1);
    }
  }
}

TEST(Permutation, DiffersBySeedAndEpoch) {
  constexpr std::uint64_t kSize = 1000;
  const Permutation base(kSize, 5, 0), epoch(kSize, 5, 1), seed(kSize, 6, 0), again(kSize, 5, 0);
  int same_epoch = 0, same_seed = 0;
  for (std::uint64_t i = 0; i < kSize; ++i) {
    same_epoch += base(i) == epoch(i);
    same_seed += base(i) == seed(i);
    EXPECT_EQ(base(i), again(i));
  }
  EXPECT_LT(same_epoch, 12);  // one is expected by chance
  EXPECT_LT(same_seed, 12);
}

// Each place holds each window equally often over seeds: chi-square over the 13 x 13 table.
TEST(Permutation, IsUniformOverSeeds) {
  constexpr std::uint64_t kSize = 13;
  constexpr int kSeeds = 13000;
  std::vector<double> counts(kSize * kSize, 0);
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Permutation permutation(kSize, static_cast<std::uint64_t>(seed), 0);
    for (std::uint64_t i = 0; i < kSize; ++i) ++counts[i * kSize + permutation(i)];
  }
  double chi = 0;
  const double expected = kSeeds / static_cast<double>(kSize);
  for (const double count : counts) chi += (count - expected) * (count - expected) / expected;
  const double freedom = (kSize - 1) * (kSize - 1);
  EXPECT_LT(chi, freedom + 5 * std::sqrt(2 * freedom));
}

TEST(Permutation, ReachesFarInLargeRuns) {
  constexpr std::uint64_t kSize = 123456789012345ull;
  const Permutation permutation(kSize, 1, 2);
  std::set<std::uint64_t> seen;
  double mean = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t at = permutation(i);
    ASSERT_LT(at, kSize);
    seen.insert(at);
    mean += static_cast<double>(at) / kSize / 1000;
  }
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_NEAR(mean, 0.5, 5 * std::sqrt(1.0 / 12 / 1000));
}

}  // namespace
}  // namespace norma
