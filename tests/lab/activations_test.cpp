// The stream of a Pre-LN model at initialisation grows like the square root of the sublayer, that of Post-LN stays.
#include "norma/lab/activations.h"

#include <gtest/gtest.h>

#include "lab/lab_check.h"

namespace norma {
namespace {

Activations of(const char* scheme, std::int64_t layers) {
  return measure_activations(test::theory_subject(test::theory_model(scheme, layers, 128, 16), 3));
}

// Over all sublayers but the first three, which still remember the embedding.
double exponent_along(const SiteValues& profile) {
  std::vector<double> k;
  for (std::size_t i = 3; i < profile.size(); ++i) k.push_back(static_cast<double>(i + 1));
  return power_law(k, std::span(profile).subspan(3))->value;
}

TEST(Activations, OfPreLNGrowLikeTheSquareRootOfTheSublayer) {
  const Activations found = of("pre", 48);
  ASSERT_EQ(found.sites.size(), 96u);
  const double growth = exponent_along(found.stream_rms);
  EXPECT_GT(growth, 0.4);
  EXPECT_LT(growth, 0.6);
  const double angle = exponent_along(found.angle);
  EXPECT_GT(angle, -0.65) << "an angle of 1 / (pi sqrt(k))";
  EXPECT_LT(angle, -0.35);
}

TEST(Activations, OfPostLNStayAndSoDoAngles) {
  const Activations found = of("post", 24);
  for (const std::vector<double>& rms : found.stream_rms) EXPECT_NEAR(rms[0], 1, 1e-3);
  EXPECT_NEAR(exponent_along(found.angle), 0, 0.1);
}

TEST(Activations, KnowANormalDistributionAndUniformAttention) {
  ModelConfig model = test::theory_model("deepnorm", 12, 128, 16);
  const Activations found = measure_activations(test::theory_subject(model, 2));
  EXPECT_NEAR(found.kurtosis.back()[0], 3, 0.5);
  EXPECT_LT(found.massive.back()[0], 8) << "the largest of 2048 normal numbers is about 3.5, their median 0.67";
  EXPECT_LT(found.entropy.back()[0], std::log(16));
  EXPECT_GT(found.entropy.back()[0], std::log(16) - 1);
}

}  // namespace
}  // namespace norma
