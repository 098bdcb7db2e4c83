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

// Cross-attention that hands through its memory alone, and does to it what the branches above do.
EncoderDecoderTables linear_stacks(double gain) {
  const BranchTables branches = linear_branches(gain);
  CrossResponse response{.query = branches.ffn.at(1, 0)};
  response.query.gradient_own = response.query.gradient_shared = {};
  response.query.change_own = response.query.change_shared = {};
  response.gradient_own = response.change_own = {gain, 0};
  response.gradient_shared = response.change_shared = {gain, gain};
  return {.encoder = branches,
          .decoder = branches,
          .cross = CrossTable(0, 2, 2, 2, std::vector<CrossResponse>(8, response))};
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

TEST(Theory, ProfiledValuesAreFoundSublayerBySublayer) {
  // Branches and normed streams have variance 1: omega_(k+1)^2 = omega_k^2 + 1.
  const Theory admin = of("admin", 12), pre = of("pre", 12);
  ASSERT_EQ(admin.profiled.size(), 24u);
  for (std::size_t k = 0; k < 24; ++k) {
    EXPECT_EQ(admin.profiled[k].name, "omega");
    EXPECT_EQ(admin.profiled[k].layer, static_cast<std::int64_t>(k / 2 + 1));
    EXPECT_NEAR(admin.profiled[k].value, std::sqrt(static_cast<double>(k + 1)), 1e-3) << k;
    EXPECT_NEAR(admin.streams[k].rms, 1, kEps);
  }
  EXPECT_NEAR(admin.amplification, pre.amplification, 1e-3) << "shares of the stream are those of Pre-LN";
  for (std::size_t k = 0; k < 24; ++k)
    EXPECT_NEAR(admin.branches[k].weight_gradient, pre.branches[k].weight_gradient, 1e-2) << k;
}

TEST(Theory, ProfilesMayBeAnyFunctionOfVariances) {
  const Scheme scheme = parse_scheme("own", R"toml(
title = "Own"
sublayer = "x + w*f(norm(x))"
[learned]
w = { init = 2, per = "sublayer", profile = "1/sqrt(var(x + w*f(norm(x))))" }
)toml");
  const Theory theory = predict(scheme, linear_branches(1), config(2));
  double w = 2, variance = 1;
  for (const ProfiledTheory& value : theory.profiled) {
    EXPECT_NEAR(value.value, w, 1e-4);
    variance += w * w;
    w = 1 / std::sqrt(variance);
  }
  EXPECT_NEAR(theory.streams.back().rms, std::sqrt(variance), 1e-4);
}

// Every copy of a hyper-connection begins as x and is written to alike, so that what is read is Pre-LN's stream.
TEST(Theory, HyperConnectionsBeginAsPreNorm) {
  for (const NormKind norm : {NormKind::rms, NormKind::layer}) {
    TheoryConfig place = config(12, norm);
    place.width = 64;
    const Theory pre = predict(find_scheme("pre"), linear_branches(0.5), place);
    for (const char* name : {"hc_static", "hc_dynamic", "mhc"}) {
      SCOPED_TRACE(name);
      const Theory theory = predict(find_scheme(name), linear_branches(0.5), place);
      EXPECT_NEAR(theory.amplification, pre.amplification, 1e-4);
      ASSERT_EQ(theory.streams.size(), pre.streams.size());
      for (std::size_t k = 0; k < pre.streams.size(); ++k) {
        EXPECT_NEAR(theory.streams[k].rms, pre.streams[k].rms, 1e-4) << k;
        EXPECT_NEAR(theory.streams[k].gradient_rms, pre.streams[k].gradient_rms, 1e-4) << k;
        EXPECT_NEAR(theory.branches[k].weight_gradient, pre.branches[k].weight_gradient, 1e-3) << k;
      }
    }
  }
}

TEST(Theory, CopiesAreMixedAndWeighed) {
  const auto scheme = [](const std::string& sublayer, const std::string& start) {
    return parse_scheme("own", "title = \"Own\"\nsublayer = \"" + sublayer +
                                   "\"\n[streams]\nH = \"copies(x0, 2)\"\n[learned]\n"
                                   "a = { init = \"" +
                                   start +
                                   "\", shape = [\"2\", \"2\"], per = \"sublayer\" }\n"
                                   "b = { init = \"i\", shape = [\"2\"], per = \"sublayer\" }\n");
  };
  const auto rms = [&](const std::string& sublayer, const std::string& start) {
    return predict(scheme(sublayer, start), linear_branches(1), config(1)).streams.front().rms;
  };
  // H = x (1, 1) + y (1, 2); rows of a are (1, 2) and (3, 4).
  const std::string write = "y = f(x); H = H + spread(b, y); ";
  EXPECT_NEAR(rms(write + "x = sum(H)", "0"), std::sqrt(4.0 + 9), 1e-9);
  EXPECT_NEAR(rms(write + "x = weigh(b, H)", "0"), std::sqrt(9.0 + 25), 1e-9);
  EXPECT_NEAR(rms(write + "H = mix(a, H); x = weigh(b, H)", "2*(i - 1) + j"), std::sqrt(17.0 * 17 + 27 * 27), 1e-9)
      << "1*(3, 5) + 2*(7, 11) of x and y";
  EXPECT_NEAR(rms(write + "H = mix(transpose(a), H); x = weigh(b, H)", "2*(i - 1) + j"), std::sqrt(16.0 * 16 + 27 * 27),
              1e-9)
      << "1*(4, 7) + 2*(6, 10) of x and y";
  EXPECT_NEAR(rms("H = mix(sinkhorn(a, 30), H); x = weigh(b, H)", "if i == j then 1 else 0"), 3, 1e-6)
      << "mixing equal copies changes nothing";
  EXPECT_NEAR(rms("H = H*1; x = weigh(softmax(b), H)", "0"), 1, 1e-9);
}

TEST(Theory, WeightsThatTheStreamMakesNeedToBeSmall) {
  const auto error = [](std::int64_t width) {
    TheoryConfig place = config(2);
    place.width = width;
    return error_of([&] { predict(find_scheme("mhc"), linear_branches(1), place); });
  };
  EXPECT_EQ(error(4096), "");
  EXPECT_NE(error(1 << 20).find("differs between tokens by 0.41"), std::string::npos) << error(1 << 20);
}

TEST(Theory, AttentionResidualsReadTheMeanOfAllBranches) {
  const Theory theory = of("attnres", 6);
  for (std::size_t k = 0; k < 12; ++k)
    EXPECT_NEAR(theory.streams[k].rms, 1 / std::sqrt(static_cast<double>(k + 1)), 1e-4) << k;
  // The last formula norms the mean of 13 wires of rms 1, and hands each of them 1/13 of what it divides by.
  EXPECT_NEAR(theory.branches.back().weight_gradient, std::sqrt(16 / 13.0), 1e-3);
  double gradient = 1 / 13.0;  // by every wire; branch k reads the mean of k wires through a norm
  for (std::size_t k = 12; k >= 1; --k) {
    EXPECT_NEAR(theory.branches[k - 1].weight_gradient, std::sqrt(16 * gradient), 2e-3) << k;
    gradient *= 1 + 1 / static_cast<double>(k);
    EXPECT_NEAR(theory.streams[k - 1].gradient_rms, std::sqrt(gradient), 1e-3) << k;
  }
  const Theory blocks = of("attnres_block", 4), whole = of("attnres", 4);  // eight blocks of one sublayer
  EXPECT_NEAR(blocks.amplification, whole.amplification, 1e-9);
  EXPECT_NEAR(blocks.branches.front().weight_gradient, whole.branches.front().weight_gradient, 1e-9);
  EXPECT_NEAR(of("attnres_block", 8).streams[4].rms, std::sqrt((1 + 4.0) / 9), 1e-4)
      << "the embedding and two sums of two branches, a third each";
}

TEST(Theory, GradientsOfAnEncoderAreThoseOfEveryCrossAttention) {
  for (const std::int64_t layers : {1, 2, 6}) {
    const EncoderDecoderTheory theory = predict(find_scheme("post"), linear_stacks(1), config(layers));
    ASSERT_EQ(theory.encoder.streams.size(), static_cast<std::size_t>(2 * layers));
    ASSERT_EQ(theory.decoder.streams.size(), static_cast<std::size_t>(3 * layers));
    // Each cross-attention of Post-LN gives half of the gradient to the memory and leaves half to the stream.
    const double left = std::exp2(-static_cast<double>(layers));
    EXPECT_NEAR(theory.decoder.streams.front().gradient_rms, std::sqrt(left), 0.01) << layers;
    EXPECT_NEAR(theory.encoder.streams.front().gradient_rms, std::sqrt(1 - left), 0.01) << layers;
    EXPECT_EQ(theory.decoder.branches[1].kind, BranchTheory::Kind::cross);
  }
}

TEST(Theory, ChangesOfAnEncoderReachTheDecoder) {
  // Post-LN: the encoder's change, 2N/2, replaces half of the decoder's at every cross-attention.
  const EncoderDecoderTheory theory = predict(find_scheme("post"), linear_stacks(1), config(6));
  EXPECT_NEAR(theory.encoder.amplification, 6, 0.1);
  double change = 0;
  for (int layer = 0; layer < 6; ++layer) {
    change += 0.5;
    change = change / 2 + (theory.encoder.amplification + 1) / 2;
    change += 0.5;
  }
  EXPECT_NEAR(theory.decoder.amplification, change, 0.05);
}

TEST(Theory, StacksHaveTheirOwnConstants) {
  TheoryConfig place = config(6);
  place.encoder_layers = 18;
  const EncoderDecoderTheory theory = predict(find_scheme("deepnorm"), linear_stacks(1), place);
  ASSERT_EQ(theory.encoder.streams.size(), 36u);
  const double encoder_beta = 0.87 * std::pow(std::pow(18, 4) * 6, -1.0 / 16), decoder_beta = std::pow(12 * 6, -0.25);
  EXPECT_NEAR(theory.encoder.branches[2].rms, encoder_beta * encoder_beta, kEps);
  for (const std::size_t k : {3u, 4u, 5u})
    EXPECT_NEAR(theory.decoder.branches[k].rms, decoder_beta * decoder_beta, kEps) << "the memory has rms 1";
  // The branch's share of a sublayer's gradient is beta^4 of alpha^2 + beta^4.
  const double alpha = std::pow(18, 0.25);
  const double share = std::pow(decoder_beta, 4) / (alpha * alpha + std::pow(decoder_beta, 4));
  EXPECT_NEAR(theory.encoder.streams.front().gradient_rms, std::sqrt(1 - std::pow(1 - share, 6)), 0.02);
}

TEST(Theory, CrossAttentionScalesWithItsMemory) {
  // No norms: what the decoder reads is the encoder's stream, of variance 4 after two branches of variance 1 and 2.
  const EncoderDecoderTheory theory = predict(find_scheme("x + f(x)"), linear_stacks(1), config(1));
  EXPECT_NEAR(theory.encoder.output_rms, 2, 1e-9);
  EXPECT_NEAR(theory.decoder.branches[1].rms, 2, 1e-9);
  EXPECT_NEAR(theory.decoder.streams[1].rms, std::sqrt(6), 1e-9);
}

TEST(Theory, CarriedScoresHandGradientsToEveryLayerBelow) {
  // Queries and keys pass `score` of a gradient at their own layer, values everything.
  const auto branches = [](double score) {
    BranchTables tables = linear_branches(1);
    CrossResponse response{.query = tables.attention.at(1, 0)};
    response.query.gradient_own = response.query.gradient_shared = {score, 0};
    response.query.change_own = response.query.change_shared = {0, 0};
    response.gradient_own = response.change_own = {1, 0};
    response.gradient_shared = response.change_shared = {1, 1};
    tables.attention_split = CrossTable(0, 2, 2, 1, std::vector<CrossResponse>(4, response));
    return tables;
  };
  const Theory plain = of("post", 6), carried = predict(find_scheme("realformer"), branches(0), config(6));
  EXPECT_NEAR(carried.streams.front().gradient_rms, plain.streams.front().gradient_rms, 1e-9);
  EXPECT_NEAR(carried.amplification, plain.amplification, 1e-9);
  // Scores of layer l have variance l, and a softmax that sharp passes 1/l to each of the l inputs.
  const Theory theory = predict(find_scheme("realformer"), branches(0.5), config(6));
  double gradient = 1, scores = 0;
  for (double l = 6; l >= 1; --l) {
    scores += 0.5 * gradient / 2 / l;
    gradient = gradient + scores;
    EXPECT_NEAR(theory.streams[static_cast<std::size_t>(2 * l - 2)].gradient_rms, std::sqrt(gradient), 1e-3) << l;
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
  EXPECT_EQ(error("realformer"), "scheme 'realformer': branches were not measured for scores that are carried");
  EXPECT_EQ(error("pre", NormKind::batch),
            "scheme 'pre': the theory has no rule for BatchNorm, whose statistics go beyond a token");
  EXPECT_EQ(error("ngpt"), "scheme 'ngpt': the theory has no rule for weights that are kept at unit length");
  const auto own = [&](const std::string& text) {
    try {
      predict(parse_scheme("own", "title = \"Own\"\n" + text), linear_branches(1), config(4));
    } catch (const NotPredictedError& caught) {
      return std::string(caught.what());
    }
    return std::string();
  };
  EXPECT_EQ(own("sublayer = \"x = x + f(x); y = y + x\"\n[streams]\ny = \"x0 + 1\""),
            "scheme 'own': stream 'y' does not begin as a multiple of x0");
  EXPECT_EQ(own("layer = \"norm(w*x + attn(x) + ffn(x))\"\n[learned]\nw = { init = 1, profile = \"var(x)\" }"),
            "scheme 'own': 'w' is measured on data, but not per sublayer");
  EXPECT_EQ(own("sublayer = \"norm(w*x + f(x))\"\n[learned]\nw = { init = 1, profile = \"mean(x)\" }"),
            "scheme 'own': the theory has no rule for a profile that reads 'x' otherwise than by var");
  const std::string copies = "[streams]\nH = \"copies(x0, 2)\"\n[learned]\n";
  EXPECT_EQ(own("sublayer = \"x = weigh(sigmoid(dot(H, w)), H); H = H + spread(b, f(x))\"\n" + copies +
                "w = { init = 1, shape = \"d\" }\nb = { init = 1, shape = [\"2\"] }"),
            "scheme 'own': the theory has no rule for 'dot(H, w)'");
  EXPECT_EQ(own("sublayer = \"x = weigh(b, H); H = append(H, f(x))\"\n" + copies + "b = { init = 1, shape = [\"2\"] }"),
            "scheme 'own': the theory has no rule for 'weigh(b, H)'");
}

TEST(Theory, DecodersNeedAFormulaForCrossAttention) {
  const Scheme scheme = parse_scheme("own", "title = \"Own\"\nlayer = \"x + attn(x) + ffn(x)\"");
  EXPECT_EQ(error_of([&] { check_predicted_encoder_decoder(scheme, config(2)); }),
            "scheme 'own' has no formula for decoders with cross-attention");
  EXPECT_EQ(error_of([&] { check_predicted_encoder_decoder(find_scheme("realformer"), config(2)); }),
            "scheme 'realformer': the theory has no rule for scores that are carried from layer to layer in "
            "cross-attention");
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
  EXPECT_GE(predicted, 37);
}

// How long it takes: norma bench --only theory.
TEST(Theory, ReachesTenThousandLayers) {
  for (const char* name : {"post", "lns", "keel", "siamese", "admin", "hc_static", "attnres"}) {
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
