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

double mean_at(const SiteValues& values, std::size_t sublayer) { return estimate_of(values[sublayer - 1]).mean; }

// What a formula adds over what it adds it to, with its own scalars: the reference simulation at 48 layers.
TEST(Activations, SharesOfBranchesAreThoseThatTheFormulaAdds) {
  const Activations pre = of("pre", 48);
  EXPECT_NEAR(mean_at(pre.branch_share, 4), 0.54, 0.06);
  EXPECT_NEAR(mean_at(pre.branch_share, 16), 0.24, 0.03);
  EXPECT_NEAR(mean_at(pre.branch_share, 96), 0.094, 0.01);
  EXPECT_NEAR(mean_at(of("deepnorm", 48).branch_share, 96), 0.012, 0.001);
  const Activations keel = of("keel", 48);
  EXPECT_NEAR(mean_at(keel.branch_share, 16), 0.0073, 0.0008);
  EXPECT_NEAR(mean_at(keel.branch_share, 96), 0.0075, 0.0008);
}

TEST(Activations, AStreamThatDoesNotChangeHasNoShareAngleOrInfluence) {
  for (const char* scheme : {"rezero", "norm(x + 0*f(x))"}) {
    const Activations found = measure_activations(test::theory_subject(test::theory_model(scheme, 4, 32, 8), 2));
    for (std::size_t site = 2; site < found.sites.size(); ++site) {  // the first norms still change the embedding
      EXPECT_EQ(found.branch_share[site], (std::vector<double>{0, 0})) << scheme << found.sites[site];
      EXPECT_EQ(found.angle[site], (std::vector<double>{0, 0})) << scheme << found.sites[site];
    }
    for (std::size_t layer = 1; layer < found.layers.size(); ++layer)
      EXPECT_EQ(found.influence[layer], (std::vector<double>{0, 0})) << scheme;
  }
}

double first_share(const char* scheme, std::size_t sublayer = 1) {
  return mean_at(measure_activations(test::theory_subject(test::theory_model(scheme, 2, 32, 8), 2)).branch_share,
                 sublayer);
}

TEST(Activations, SharesKnowCopiesStreamsAndWholeLayers) {
  const double pre = first_share("pre"), post = first_share("post");
  const auto expect = [](double found, double expected, const char* what) {
    EXPECT_NEAR(found / expected, 1, 1e-5) << what;
  };
  expect(first_share("gpas"), pre, "both parts are scaled");
  expect(first_share("hc_static"), pre, "to all copies the same is added");
  expect(first_share("parallel"), pre, "attention");
  EXPECT_LT(first_share("parallel", 2), first_share("pre", 2) * 1.2) << "of x alone, without attention";
  expect(first_share("u = norm(x + attn(x)); norm(x + u + ffn(u))"), post, "the first sum of the layer");
  expect(first_share("residual"), post, "the main stream, not the one beside it");
  expect(first_share("x + f(norm(x))/4"), pre / 4, "a scale on the branch");
  expect(first_share("norm(3*x - f(x))"), post / 3, "a scale on the stream, and a difference");
  EXPECT_NEAR(first_share("x + 0.2*(rms(f(x)) - x)"), 0.25, 0.02) << "as nGPT steps, of a stream of rms 1";
  EXPECT_GT(first_share("attnres"), 0) << "no sum: the branch over the stream";
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
