// Training images mixed in pairs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "data/image_folder.h"

namespace norma {
namespace {

class ImageMixing : public test::ImageFolder {};

TEST_F(ImageMixing, MixesPairsTheSameWayWhereverItResumes) {
  DataConfig given = animals();
  const auto apart = open_source(given, {.batch = 4, .time = 1});
  given.settings["mixup"] = 0.4;
  const auto one = open_source(given, {.batch = 4, .time = 1}), two = open_source(given, {.batch = 4, .time = 1});
  Batch a, b, still;
  std::set<float> shares;
  for (std::uint64_t index = 0; index < 50; ++index) {
    one->fill(index, 3, a);
    apart->fill(index, 3, still);
    const float share = a.numbers("mixture")[0];
    ASSERT_TRUE(share >= 0 && share <= 1);
    shares.insert(share);
    EXPECT_EQ(a.ids("targets"), still.ids("targets"));
    Batch::Ids first = a.ids("targets"), second = a.ids("mixed_targets");
    std::sort(first.begin(), first.end());
    std::sort(second.begin(), second.end());
    EXPECT_EQ(first, second) << "each image is once a second one";
    double before = 0, after = 0;  // mixing keeps the sum of a batch
    for (const float x : still.numbers("image")) before += x;
    for (const float x : a.numbers("image")) after += x;
    EXPECT_NEAR(before, after, 1e-3);
  }
  EXPECT_GT(shares.size(), 40u);
  two->fill(49, 3, b);
  EXPECT_EQ(a.numbers("image"), b.numbers("image"));
  EXPECT_EQ(a.ids("mixed_targets"), b.ids("mixed_targets"));
  EXPECT_EQ(a.numbers("mixture"), b.numbers("mixture"));
  one->fill_evaluation(0, a);
  apart->fill_evaluation(0, b);
  EXPECT_EQ(a.numbers("image"), b.numbers("image")) << "nothing held out is mixed";
  EXPECT_EQ(a.numbers("mixture")[0], 0);
  EXPECT_EQ(a.ids("mixed_targets"), a.ids("targets"));
  given.settings["mixup"] = 1.5;
  expect_said(given, "mixup");
}

// Beta(a, a) has mean 1/2 and variance 1/(4 (2a + 1)).
TEST_F(ImageMixing, SharesFollowTheirDistribution) {
  for (const double a : {0.2, 1.0}) {
    DataConfig given = animals();
    given.settings["mixup"] = a;
    const auto source = open_source(given, {.batch = 2, .time = 1});
    Batch batch;
    double sum = 0, squares = 0;
    constexpr int kDraws = 4000;
    for (std::uint64_t index = 0; index < kDraws; ++index) {
      source->fill(index, 1, batch);
      const double share = batch.numbers("mixture")[0];
      sum += share, squares += share * share;
    }
    const double mean = sum / kDraws, variance = squares / kDraws - mean * mean, expected = 1 / (4 * (2 * a + 1));
    EXPECT_NEAR(mean, 0.5, 4 * std::sqrt(expected / kDraws));
    EXPECT_NEAR(variance, expected, 0.05 * expected);
  }
}

}  // namespace
}  // namespace norma
