// How far samples are from data: distances whose value is known, and what chance alone gives.
#include "norma/lab/sample_quality.h"

#include <gtest/gtest.h>

#include <cmath>

#include "error_of.h"
#include "norma/core/random.h"

namespace norma {
namespace {

GaussianMixture four_centres() {
  return {.dimensions = 2, .means = {1, 0, -1, 0, 0, 1, 0, -1}, .classes = {0, 1, 2, 3}, .deviation = 0.2};
}

std::vector<float> points_of(const GaussianMixture& mixture, std::size_t count, std::size_t centres, double deviation) {
  const RandomStream stream(7, "points");
  std::vector<float> all;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < 2; ++j)
      all.push_back(static_cast<float>(mixture.means[2 * (i % centres) + j] + deviation * stream.normal(2 * i + j)));
  }
  return all;
}

TEST(MixtureDistance, IsNearChanceForTrueSamplesAndFarForOthers) {
  const GaussianMixture mixture = four_centres();
  const MixtureDistance same = distance_to_mixture(points_of(mixture, 1000, 4, 0.2), mixture),
                        narrow = distance_to_mixture(points_of(mixture, 1000, 3, 0.1), mixture);
  EXPECT_LT(std::abs(same.energy.value), 0.01);
  EXPECT_LT(same.floor, 0.01);
  EXPECT_LE(same.energy.low, same.energy.value);
  EXPECT_GE(same.energy.high, same.energy.value);
  EXPECT_LT(same.mean_error, 0.05);
  EXPECT_LT(same.variance_error, 0.05);
  EXPECT_EQ(same.empty_centres, 0);
  EXPECT_GT(narrow.energy.low, 0.02) << "a centre is missing";
  EXPECT_EQ(narrow.empty_centres, 1);
  EXPECT_GT(narrow.mean_error, 0.2);
  EXPECT_EQ(test::error_of([&] {
              distance_to_mixture(std::vector<float>{1, 2}, mixture);
            }),
            "1 samples are too few to be compared with a distribution; expected at least 2");
}

// Two normal distributions along rotated axes: the distance in closed form, up to what 20,000 draws leave.
TEST(FrechetDistance, OfNormalsIsTheirs) {
  const RandomStream stream(3, "features");
  constexpr std::size_t kRows = 20000;
  const auto draws = [&](std::size_t first, double mean, double wide, double narrow) {
    std::vector<double> rows;
    for (std::size_t i = 0; i < kRows; ++i) {
      const double a = wide * stream.normal(first + 2 * i), b = narrow * stream.normal(first + 2 * i + 1);
      rows.push_back(mean + (a - b) / std::sqrt(2.0));
      rows.push_back((a + b) / std::sqrt(2.0));
    }
    return rows;
  };
  const std::vector<double> one = draws(0, 0, 2, 1), other = draws(4 * kRows, 1.5, 3, 0.5);
  EXPECT_NEAR(frechet_distance(one, other, 2), 1.5 * 1.5 + 1 + 0.25, 0.12) << "(2 - 3)^2 + (1 - 0.5)^2 and the means'";
  EXPECT_NEAR(frechet_distance(one, one, 2), 0, 1e-6);
}

// 60 draws of a normal distribution in 8 dimensions, from 400 of another: the distance as it stands is too large every
// time, by more than the interval is wide.
TEST(FrechetDistance, OfFewSamplesIsWithoutTheirBias) {
  constexpr std::size_t kWidth = 8, kRows = 60, kOthers = 400;
  const auto draws = [](std::uint64_t seed, const char* name, std::size_t rows, double mean, double deviation) {
    const RandomStream stream(seed, name);
    std::vector<double> all(rows * kWidth);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = mean + deviation * stream.normal(i);
    return all;
  };
  constexpr double kTrue = kWidth * (0.3 * 0.3 + 0.2 * 0.2);
  constexpr int kTrials = 40;
  int covered = 0, too_large = 0;
  double plain = 0, corrected = 0;
  for (std::uint64_t seed = 1; seed <= kTrials; ++seed) {
    const FrechetEstimate found =
        estimate_frechet(draws(seed, "few", kRows, 0.3, 1.2), draws(seed, "many", kOthers, 0, 1), kWidth, seed);
    EXPECT_LT(found.distance.low, found.distance.value);
    EXPECT_GT(found.distance.high, found.distance.value);
    covered += found.distance.low <= kTrue && kTrue <= found.distance.high;
    too_large += found.plain > kTrue;
    plain += found.plain / kTrials;
    corrected += found.distance.value / kTrials;
  }
  EXPECT_GE(covered, 34) << "of 40, where 38 are to be expected";
  EXPECT_GE(too_large, 36);
  EXPECT_GT(plain, 1.4 * kTrue);
  EXPECT_NEAR(corrected, kTrue, 0.15 * kTrue);
}

// A comparison with zero that takes NaN for nothing would call the samples of a broken model perfect.
TEST(FrechetDistance, OfRowsThatAreNotFiniteIsRefused) {
  std::vector<double> rows = {1, 2, 3, 4, 5, 7};
  EXPECT_EQ(test::error_of([&] { estimate_frechet(std::span(rows).first(2), rows, 2); }),
            "a Frechet distance between 1 and 3 rows; expected at least 2 of both");
  std::vector<double> broken = rows;
  broken[3] = std::nan("");
  EXPECT_TRUE(std::isnan(frechet_distance(broken, rows, 2)));
  EXPECT_EQ(test::error_of([&] { estimate_frechet(broken, rows, 2); }),
            "features that are not finite have no Frechet distance");
}

}  // namespace
}  // namespace norma
