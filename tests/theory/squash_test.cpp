// DyT and tanh: Gaussian moments against sampling and limits.
#include <numbers>

#include "check.h"
#include "theory/branches.h"
#include "theory/moments.h"

namespace norma {
namespace {

using test::config;
using test::linear_branches;

TEST(Theory, DyTSquashes) {
  Scheme scheme = test::scheme_named("x + f(dyt(x))");
  TheoryConfig small = config(1);
  small.input = {1e-6, 0};
  EXPECT_NEAR(propagate(scheme, linear_branches(1), small).streams[0].rms, 1e-3 * std::sqrt(1.25), 1e-7)
      << "tanh(x/2) is x/2 for small x";
  small.input = {1e6, 0};
  EXPECT_NEAR(propagate(scheme, linear_branches(1), small).branches[0].rms, 1, 0.02) << "and 1 for large x";
}

TEST(Theory, SquashResponseMatchesSampling) {
  const RandomStream random(1, "squash");
  for (const auto& [slope, variance, rho] : {std::tuple{0.5, 1.0, 0.6}, {1.0, 4.0, 0.3}, {2.0, 0.25, 0.95}}) {
    double own = 0, shared = 0, slope_own = 0, slope_shared = 0;
    constexpr int kSamples = 200000;
    for (std::uint64_t i = 0; i < kSamples; ++i) {
      const double s = std::sqrt(variance), common = random.normal(3 * i);
      const auto token = [&](std::uint64_t j) {
        return std::tanh(slope * s * (std::sqrt(rho) * common + std::sqrt(1 - rho) * random.normal(3 * i + j)));
      };
      const double a = token(1), b = token(2), da = slope * (1 - a * a), db = slope * (1 - b * b);
      own += a * a / kSamples;
      shared += a * b / kSamples;
      slope_own += da * da / kSamples;
      slope_shared += da * db / kSamples;
    }
    const SquashResponse response = squash_response(slope, variance, rho);
    const double tolerance = 4 / std::sqrt(kSamples);
    EXPECT_NEAR(response.output.own, own, tolerance);
    EXPECT_NEAR(response.output.shared, shared, tolerance);
    EXPECT_NEAR(response.slope.own, slope_own, 4 * tolerance);
    EXPECT_NEAR(response.slope.shared, slope_shared, 4 * tolerance);
  }
}

// Steep ones are expanded in another way: against a fine grid, without correlation and with it at 1.
TEST(Theory, SquashResponseMatchesAFineGrid) {
  for (const double s : {0.001, 0.3, 1.9, 2.1, 5.0, 60.0}) {
    SCOPED_TRACE(s);
    constexpr int kPoints = 200000;
    double own = 0, slope = 0, mean = 0;
    for (int i = 0; i < kPoints; ++i) {
      const double z = 8 * (2 * (i + 0.5) / kPoints - 1), t = std::tanh(s * z), derivative = 2 * (1 - t * t);
      const double weight = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi) * 16 / kPoints;
      own += weight * t * t;
      slope += weight * derivative * derivative;
      mean += weight * derivative;
    }
    const SquashResponse none = squash_response(2, s * s / 4, 0), full = squash_response(2, s * s / 4, 1);
    const double step = s > 10 ? 0.02 : 1e-3;  // nodes are few where tanh is a step
    EXPECT_NEAR(none.output.own, own, step * own);
    EXPECT_NEAR(none.slope.own, slope, 1e-3 * slope);
    EXPECT_NEAR(none.mean_slope, mean, 1e-3 * mean);
    EXPECT_NEAR(none.output.shared, 0, 1e-12);
    EXPECT_NEAR(none.slope.shared, mean * mean, 2e-3 * mean * mean);
    EXPECT_NEAR(full.output.shared, own, step * own);
    EXPECT_NEAR(full.slope.shared, slope, 1e-3 * slope);
  }
}

TEST(Theory, SaturatedSquashesStillPassTheGradientOfTheirMiddle) {
  // E sech^4(s z) = 4/3 / (s sqrt(2 pi)) for large s.
  for (const double s : {20.0, 500.0}) {
    const SquashResponse response = squash_response(1, s * s, 0);
    EXPECT_NEAR(response.slope.own, 4 / (3 * s * std::sqrt(2 * std::numbers::pi)), 0.01 / s);
  }
}

}  // namespace
}  // namespace norma
