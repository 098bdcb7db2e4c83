// The theory on branches whose response is known exactly, so that every law can be written down.
#include "theory/branches.h"
#include "theory/exponents.h"

namespace norma {
namespace {

using test::config;
using test::kEps;
using test::linear_branches;
using test::theory_of;

TEST(Theory, PreNormStreamsGrowByOneBranchEach) {
  const Theory theory = theory_of("pre", 12);
  ASSERT_EQ(theory.streams.size(), 24u);
  for (std::size_t k = 0; k < 24; ++k)
    EXPECT_NEAR(theory.streams[k].rms, std::sqrt(2.0 + static_cast<double>(k)), kEps) << k;
  EXPECT_NEAR(theory.output_rms, 1, kEps);
}

TEST(Theory, PreNormGradientsFollowTheStream) {
  // g_(k-1)^2 = g_k^2 (1 + 1/rms_(k-1)^2), and the final norm divides by the last rms.
  const Theory theory = theory_of("pre", 6);
  double expected = 1 / 13.0;
  for (std::size_t k = 12; k-- > 0;) {
    EXPECT_NEAR(theory.branches[k].weight_gradient, std::sqrt(16 * expected), 1e-3) << k;
    expected *= 1 + 1 / (1.0 + static_cast<double>(k));
    EXPECT_NEAR(theory.streams[k].gradient_rms, std::sqrt(expected), 1e-3) << k;
  }
}

TEST(Theory, PostNormStaysAtOneAndItsGradientsKeepTheirSize) {
  const Theory theory = theory_of("post", 48);
  for (const StreamTheory& stream : theory.streams) EXPECT_NEAR(stream.rms, 1, kEps);
  // Skip and branch each give back half of what the norm divided by two.
  EXPECT_NEAR(theory.streams.front().gradient_rms, 1, 0.01);
  EXPECT_NEAR(theory.branches.front().weight_gradient, theory.branches.back().weight_gradient, 0.05);
}

TEST(Theory, AmplificationIsLinearForPostAndLogarithmicForPre) {
  // Each of n branches adds 1 at its output; Post-LN keeps half of it, Pre-LN 1/(k + 1) of the final stream's square.
  for (const std::int64_t layers : {4, 16, 64}) {
    const double n = 2 * static_cast<double>(layers);
    EXPECT_NEAR(theory_of("post", layers).amplification, n / 2, 0.02 * n) << layers;
    double change = 0;
    for (double k = 1; k <= n; ++k) change = change * (1 + 1 / k) + 1;
    EXPECT_NEAR(theory_of("pre", layers).amplification, change / (n + 1), 1e-2) << layers;
  }
}

TEST(Theory, ExponentsAreThePublishedOnes) {
  const std::vector<std::int64_t> depths = {64, 128, 256, 512};
  const auto fit = [&](const char* scheme) {
    return test::exponents_over(test::scheme_named(scheme), linear_branches(0.5), config(1), depths);
  };
  EXPECT_NEAR(fit("post").last_gradient, 0, 0.01);
  EXPECT_NEAR(fit("post").amplification, 1, 0.02);
  EXPECT_NEAR(fit("pre").stream_rms, 0.5, 0.01);
  EXPECT_NEAR(fit("pre").last_gradient, -0.5, 0.01);
  EXPECT_LT(fit("pre").amplification, 0.25) << "a logarithm";
  EXPECT_NEAR(fit("deepnorm").last_gradient, -0.5, 0.01);
  EXPECT_NEAR(fit("deepnorm").amplification, 0, 0.02);
  EXPECT_NEAR(fit("keel").last_gradient, -1, 0.01);
  EXPECT_NEAR(fit("completep").last_gradient, -1, 0.02);
  EXPECT_NEAR(fit("completep").amplification, -1, 0.02);
  EXPECT_NEAR(fit("depth_mup").last_gradient, -0.5, 0.02);
  EXPECT_NEAR(fit("depth_mup").amplification, 0, 0.02);
  TheoryConfig gpt2 = config(1);
  gpt2.width = 2500;  // where Xavier's deviation is GPT-2's 0.02
  const Exponents scaled = test::exponents_over(test::scheme_named("pre_gpt2"), linear_branches(0.5), gpt2, depths);
  EXPECT_NEAR(scaled.amplification, 1, 0.02) << "weights are small beside a change of fixed size";
  EXPECT_NEAR(scaled.last_gradient, 0, 0.02) << "the stream no longer grows";
}

TEST(Theory, InitGainsScaleBranches) {
  // DeepNorm: beta on values and outputs, hence beta^4 on an attention branch, and on both feed-forward matrices.
  const Theory theory = theory_of("deepnorm", 12);
  const double beta = std::pow(96, -0.25);
  EXPECT_NEAR(theory.branches[2].rms, beta * beta, kEps);
  EXPECT_NEAR(theory.branches[3].rms, beta * beta, kEps);
}

TEST(Theory, WiresThatShareAPartAddUpCoherently) {
  const auto rms = [](const char* formula) { return theory_of(formula, 1).streams.front().rms; };
  EXPECT_NEAR(rms("x + x"), 2, 1e-12);
  EXPECT_NEAR(rms("y = 3*x; y - x"), 2, 1e-12);
  EXPECT_NEAR(rms("y = x + f(x); y + x"), std::sqrt(5), 1e-12);
  EXPECT_NEAR(rms("norm(x) + x"), 2, kEps);
  EXPECT_NEAR(rms("y = f(x); x + y - y/2"), std::sqrt(1.25), 1e-12);
}

TEST(Theory, GradientsOfTwoPathsAddUpCoherently) {
  const auto gradient = [](const char* formula) { return theory_of(formula, 1).streams.back().gradient_rms; };
  EXPECT_NEAR(gradient("x + x"), 2, 1e-12);
  EXPECT_NEAR(gradient("y = x/2; y + x"), 1.5, 1e-12);
  EXPECT_NEAR(gradient("norm(x) + x"), 1.5, kEps) << "the second formula reads an x of rms 2";
  EXPECT_NEAR(gradient("x + sg(x)"), 1, 1e-12);
  EXPECT_NEAR(gradient("x + f(x)"), std::sqrt(2), 1e-12);
}

TEST(Theory, StreamsBesideXAreFollowed) {
  // ResiDual: r gathers every branch of the normed x; the output adds x and norm(r).
  const Theory theory = theory_of("residual", 8);
  for (const StreamTheory& stream : theory.streams) EXPECT_NEAR(stream.rms, 1, kEps);
  EXPECT_GT(theory.output_rms, std::sqrt(2)) << "x and norm(r) have the last branches in common";
  EXPECT_LT(theory.output_rms, 2);
}

TEST(Theory, LearnedValuesCountAtTheirStart) {
  const Theory rezero = theory_of("rezero", 8);
  EXPECT_NEAR(rezero.streams.back().rms, 1, 1e-12);
  EXPECT_NEAR(rezero.streams.front().gradient_rms, 1, 1e-12);
  EXPECT_EQ(rezero.amplification, 0);
  EXPECT_NEAR(theory_of("gpas", 8).streams.back().rms, theory_of("pre", 8).streams.back().rms, 1e-12) << "silu(0) is 0";
  EXPECT_NEAR(theory_of("pre_to_post", 8).streams.back().rms, theory_of("pre", 8).streams.back().rms, 1e-12)
      << "at step 0";
}

TEST(Theory, ConditionsChooseTheWiringOfEachLayer) {
  const Theory mix = theory_of("mix", 8);
  EXPECT_NEAR(mix.streams[3].rms, 1, kEps) << "layers 1 and 2 are Post-LN";
  EXPECT_NEAR(mix.streams[15].rms, std::sqrt(13), 1e-3);
}

TEST(Theory, SlopesOfPowersAreTheirExponents) {
  EXPECT_NEAR(log_slope({1, 2, 4, 8}, {3, 3 * std::sqrt(2), 6, 6 * std::sqrt(2)}), 0.5, 1e-12);
  EXPECT_TRUE(std::isnan(log_slope({1, 2}, {0, 1})));
}

}  // namespace
}  // namespace norma
