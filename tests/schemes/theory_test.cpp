// The theory on branches whose response is known exactly, so that every law can be written down.
#include "norma/schemes/theory.h"

#include <numbers>

#include "check.h"
#include "norma/schemes/catalogue.h"
#include "schemes/theory_moments.h"

namespace norma {
namespace {

using test::error_of;

// A random linear map of each token by itself: every second moment is multiplied by `gain`.
BranchTables linear_branches(double gain, std::int64_t time = 16) {
  const double t = static_cast<double>(time);
  const BranchResponse response{.output = {gain, 0},
                                .gradient_own = {gain, 0},
                                .gradient_shared = {gain, gain},
                                .change_own = {gain, 0},
                                .change_shared = {gain, gain},
                                .weight_own = t,
                                .weight_shared = t * t,
                                .noise_last = {1, 0},
                                .noise_first = {0, 0},
                                .noise_scores = {0, 0}};
  // For correlated inputs the outputs are as correlated.
  BranchResponse correlated = response;
  correlated.output.shared = gain;
  correlated.noise_last.shared = 1;
  const BranchTable table(0, 2, 2, {response, correlated, response, correlated});
  return {.attention = table, .ffn = table, .time = time};
}

TheoryConfig config(std::int64_t layers, NormKind norm = NormKind::rms) {
  return {.layers = layers, .width = 1 << 20, .heads = 1, .norm = norm, .input = {1, 0}};
}

Theory of(const std::string& scheme, std::int64_t layers, double gain = 1) {
  return predict(find_scheme(scheme), linear_branches(gain), config(layers));
}

constexpr double kEps = 1e-4;  // norms add an eps of their own to variances

TEST(Theory, PreNormStreamsGrowByOneBranchEach) {
  const Theory theory = of("pre", 12);
  ASSERT_EQ(theory.streams.size(), 24u);
  for (std::size_t k = 0; k < 24; ++k)
    EXPECT_NEAR(theory.streams[k].rms, std::sqrt(2.0 + static_cast<double>(k)), kEps) << k;
  EXPECT_NEAR(theory.output_rms, 1, kEps);
}

TEST(Theory, PreNormGradientsFollowTheStream) {
  // g_(k-1)^2 = g_k^2 (1 + 1/rms_(k-1)^2), and the final norm divides by the last rms.
  const Theory theory = of("pre", 6);
  double expected = 1 / 13.0;
  for (std::size_t k = 12; k-- > 0;) {
    EXPECT_NEAR(theory.branches[k].weight_gradient, std::sqrt(16 * expected), 1e-3) << k;
    expected *= 1 + 1 / (1.0 + static_cast<double>(k));
    EXPECT_NEAR(theory.streams[k].gradient_rms, std::sqrt(expected), 1e-3) << k;
  }
}

TEST(Theory, PostNormStaysAtOneAndItsGradientsKeepTheirSize) {
  const Theory theory = of("post", 48);
  for (const StreamTheory& stream : theory.streams) EXPECT_NEAR(stream.rms, 1, kEps);
  // Skip and branch each give back half of what the norm divided by two.
  EXPECT_NEAR(theory.streams.front().gradient_rms, 1, 0.01);
  EXPECT_NEAR(theory.branches.front().weight_gradient, theory.branches.back().weight_gradient, 0.05);
}

TEST(Theory, AmplificationIsLinearForPostAndLogarithmicForPre) {
  // Each of n branches adds 1 at its output; Post-LN keeps half of it, Pre-LN 1/(k + 1) of the final stream's square.
  for (const std::int64_t layers : {4, 16, 64}) {
    const double n = 2 * static_cast<double>(layers);
    EXPECT_NEAR(of("post", layers).amplification, n / 2, 0.02 * n) << layers;
    double change = 0;
    for (double k = 1; k <= n; ++k) change = change * (1 + 1 / k) + 1;
    EXPECT_NEAR(of("pre", layers).amplification, change / (n + 1), 1e-2) << layers;
  }
}

TEST(Theory, ExponentsAreThePublishedOnes) {
  const std::vector<std::int64_t> depths = {64, 128, 256, 512};
  const auto fit = [&](const char* scheme) {
    return fit_exponents(find_scheme(scheme), linear_branches(0.5), config(1), depths);
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
  const Exponents scaled = fit_exponents(find_scheme("pre_gpt2"), linear_branches(0.5), gpt2, depths);
  EXPECT_NEAR(scaled.amplification, 1, 0.02) << "weights are small beside a change of fixed size";
  EXPECT_NEAR(scaled.last_gradient, 0, 0.02) << "the stream no longer grows";
}

TEST(Theory, InitGainsScaleBranches) {
  // DeepNorm: beta on values and outputs, hence beta^4 on an attention branch, and on both feed-forward matrices.
  const Theory theory = of("deepnorm", 12);
  const double beta = std::pow(96, -0.25);
  EXPECT_NEAR(theory.branches[2].rms, beta * beta, kEps);
  EXPECT_NEAR(theory.branches[3].rms, beta * beta, kEps);
}

TEST(Theory, WiresThatShareAPartAddUpCoherently) {
  const auto rms = [](const char* formula) { return of(formula, 1).streams.front().rms; };
  EXPECT_NEAR(rms("x + x"), 2, 1e-12);
  EXPECT_NEAR(rms("y = 3*x; y - x"), 2, 1e-12);
  EXPECT_NEAR(rms("y = x + f(x); y + x"), std::sqrt(5), 1e-12);
  EXPECT_NEAR(rms("norm(x) + x"), 2, kEps);
  EXPECT_NEAR(rms("y = f(x); x + y - y/2"), std::sqrt(1.25), 1e-12);
}

TEST(Theory, GradientsOfTwoPathsAddUpCoherently) {
  const auto gradient = [](const char* formula) { return of(formula, 1).streams.back().gradient_rms; };
  EXPECT_NEAR(gradient("x + x"), 2, 1e-12);
  EXPECT_NEAR(gradient("y = x/2; y + x"), 1.5, 1e-12);
  EXPECT_NEAR(gradient("norm(x) + x"), 1.5, kEps) << "the second formula reads an x of rms 2";
  EXPECT_NEAR(gradient("x + sg(x)"), 1, 1e-12);
  EXPECT_NEAR(gradient("x + f(x)"), std::sqrt(2), 1e-12);
}

TEST(Theory, StreamsBesideXAreFollowed) {
  // ResiDual: r gathers every branch of the normed x; the output adds x and norm(r).
  const Theory theory = of("residual", 8);
  for (const StreamTheory& stream : theory.streams) EXPECT_NEAR(stream.rms, 1, kEps);
  EXPECT_GT(theory.output_rms, std::sqrt(2)) << "x and norm(r) have the last branches in common";
  EXPECT_LT(theory.output_rms, 2);
}

TEST(Theory, LearnedValuesCountAtTheirStart) {
  const Theory rezero = of("rezero", 8);
  EXPECT_NEAR(rezero.streams.back().rms, 1, 1e-12);
  EXPECT_NEAR(rezero.streams.front().gradient_rms, 1, 1e-12);
  EXPECT_EQ(rezero.amplification, 0);
  EXPECT_NEAR(of("gpas", 8).streams.back().rms, of("pre", 8).streams.back().rms, 1e-12) << "silu(0) is 0";
  EXPECT_NEAR(of("pre_to_post", 8).streams.back().rms, of("pre", 8).streams.back().rms, 1e-12) << "at step 0";
}

TEST(Theory, ConditionsChooseTheWiringOfEachLayer) {
  const Theory mix = of("mix", 8);
  EXPECT_NEAR(mix.streams[3].rms, 1, kEps) << "layers 1 and 2 are Post-LN";
  EXPECT_NEAR(mix.streams[15].rms, std::sqrt(13), 1e-3);
}

TEST(Theory, DyTSquashes) {
  Scheme scheme = find_scheme("x + f(dyt(x))");
  TheoryConfig small = config(1);
  small.input = {1e-6, 0};
  EXPECT_NEAR(predict(scheme, linear_branches(1), small).streams[0].rms, 1e-3 * std::sqrt(1.25), 1e-7)
      << "tanh(x/2) is x/2 for small x";
  small.input = {1e6, 0};
  EXPECT_NEAR(predict(scheme, linear_branches(1), small).branches[0].rms, 1, 0.02) << "and 1 for large x";
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

TEST(Theory, SaturatedSquashesStillPassTheGradientOfTheirMiddle) {
  // E sech^4(s z) = 4/3 / (s sqrt(2 pi)) for large s.
  for (const double s : {20.0, 500.0}) {
    const SquashResponse response = squash_response(1, s * s, 0);
    EXPECT_NEAR(response.slope.own, 4 / (3 * s * std::sqrt(2 * std::numbers::pi)), 0.01 / s);
  }
}

TEST(Theory, SumsAndTheirAdjointAgree) {
  // <g, M w> = <M^T g, w> for every pair of vectors, checked on their outer products.
  const std::vector<TheoryInstruction::Term> terms = {{0, {}}, {2, {}}, {3, {}}};
  const double factors[] = {0.5, -2, 3};
  for (const int to : {1, 2}) {
    const std::array<double, 4> w = {1, 2, -1, 4}, g = {3, 1, -2, 0.5};
    std::array<double, 4> moved = w, pulled = g;
    moved[static_cast<std::size_t>(to)] = 0.5 * w[0] - 2 * w[2] + 3 * w[3];
    const double handed = g[static_cast<std::size_t>(to)];
    pulled[static_cast<std::size_t>(to)] = 0;
    pulled[0] += 0.5 * handed;
    pulled[2] -= 2 * handed;
    pulled[3] += 3 * handed;
    MomentMatrix<1> forward, backward;
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        forward.set(i, j, {w[static_cast<std::size_t>(i)] * w[static_cast<std::size_t>(j)]});
        backward.set(i, j, {g[static_cast<std::size_t>(i)] * g[static_cast<std::size_t>(j)]});
      }
    }
    forward.assign_sum(to, terms, factors, 4);
    backward.pull_back(to, terms, factors, 4);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        EXPECT_NEAR(forward.at(i, j)[0], moved[static_cast<std::size_t>(i)] * moved[static_cast<std::size_t>(j)],
                    1e-12);
        EXPECT_NEAR(backward.at(i, j)[0], pulled[static_cast<std::size_t>(i)] * pulled[static_cast<std::size_t>(j)],
                    1e-12);
      }
    }
  }
}

TEST(Theory, WhatHasNoRuleIsNamed) {
  const auto error = [](const std::string& scheme, NormKind norm = NormKind::layer) {
    try {
      predict(find_scheme(scheme), linear_branches(1), config(4, norm));
    } catch (const NotPredictedError& caught) {
      return std::string(caught.what());
    }
    return std::string();
  };
  EXPECT_EQ(error("x + gate(f(x))"), "scheme 'formula': the theory has no rule for the function 'gate'");
  EXPECT_EQ(error("x + x*f(x)"), "scheme 'formula': the theory has no rule for 'x*f(x)'");
  EXPECT_EQ(error("x + f(x) + f(norm(x))"),
            "scheme 'formula': the theory has no rule for a branch that is called twice with the same weights");
  EXPECT_EQ(error("realformer"),
            "scheme 'realformer': the theory has no rule for scores that are carried from layer to layer");
  EXPECT_EQ(error("pre", NormKind::batch),
            "scheme 'pre': the theory has no rule for BatchNorm, whose statistics go beyond a token");
  EXPECT_EQ(error("ngpt"), "scheme 'ngpt': the theory has no rule for weights that are kept at unit length");
  EXPECT_EQ(error("hc_static"), "scheme 'hc_static': stream 'H' does not begin as a multiple of x0");
  EXPECT_EQ(error("admin"), "scheme 'admin': 'omega' is measured on data before the first step");
}

TEST(Theory, WhatHasNoMeaningIsAnError) {
  for (const char* formula : {"x + f(l)", "x + f()", "norm(f())", "norm(f(x, x))", "x + y", "x/0 + f(x)"})
    EXPECT_NE(error_of([&] { of(formula, 2); }), "") << formula;
}

TEST(Theory, EverySchemeOfTheCatalogueIsPredictedOrSaysWhyNot) {
  int predicted = 0;
  for (const Scheme& scheme : catalogue()) {
    SCOPED_TRACE(scheme.name);
    try {
      const Theory theory = predict(scheme, linear_branches(0.5), config(12));
      EXPECT_GT(theory.output_rms, 0);
      EXPECT_TRUE(std::isfinite(theory.amplification));
      for (const StreamTheory& stream : theory.streams) EXPECT_GT(stream.gradient_rms, 0);
      ++predicted;
    } catch (const NotPredictedError& error) {
      EXPECT_NE(std::string(error.what()).find(scheme.name), std::string::npos);
    }
  }
  EXPECT_GE(predicted, 28);
}

// How long it takes: norma bench --only theory.
TEST(Theory, ReachesTenThousandLayers) {
  for (const char* name : {"post", "lns", "keel", "siamese"}) {
    const Theory theory = predict(find_scheme(name), linear_branches(1), config(10000));
    EXPECT_EQ(theory.streams.size(), 20000u) << name;
    EXPECT_TRUE(std::isfinite(theory.output_rms)) << name;
    EXPECT_TRUE(std::isfinite(theory.amplification)) << name;
  }
}

TEST(Theory, SlopesOfPowersAreTheirExponents) {
  EXPECT_NEAR(log_slope({1, 2, 4, 8}, {3, 3 * std::sqrt(2), 6, 6 * std::sqrt(2)}), 0.5, 1e-12);
  EXPECT_TRUE(std::isnan(log_slope({1, 2}, {0, 1})));
}

}  // namespace
}  // namespace norma
