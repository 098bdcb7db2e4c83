// Cross-entropy: derivatives, the fused projection against the plain one, ignored rows, smoothing, bad targets.
#include "norma/ops/cross_entropy.h"

#include "check.h"
#include "norma/ops/linear.h"
#include "norma/ops/one_hot.h"
#include "sanitized.h"

namespace norma {
namespace {

using test::check_gradients;

void fill_targets(CpuSession& session, std::int32_t vocabulary, std::int32_t ignored_every = 0) {
  const std::span<std::int32_t> targets = session.tensor<std::int32_t>("targets");
  const RandomStream stream(7, "targets");
  for (std::size_t i = 0; i < targets.size(); ++i) {
    targets[i] = static_cast<std::int32_t>(stream.below(i, static_cast<std::uint64_t>(vocabulary)));
    if (ignored_every > 0 && i % static_cast<std::size_t>(ignored_every) == 0) targets[i] = -100;
  }
}

TEST(CrossEntropy, EqualsTheTextbookFormula) {
  const std::int64_t rows = 9, vocabulary = 37;
  const double smoothing = 0.1;
  Graph g;
  const Wire logits = g.input("z", {{rows, vocabulary}, DType::f64}),
             targets = g.input("targets", {{rows}, DType::i32});
  g.output("loss", cross_entropy(logits, targets, g.fill({{1}, DType::f64}, smoothing)));
  CpuSession session(test::plain_plan(g));
  test::randomise_all(session);
  fill_targets(session, static_cast<std::int32_t>(vocabulary), 4);
  session.run();
  double total = 0, counted = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int32_t target = session.tensor<std::int32_t>("targets")[static_cast<std::size_t>(row)];
    if (target == -100) continue;
    const double* z = session.tensor<double>("z").data() + row * vocabulary;
    double partition = 0;
    for (std::int64_t j = 0; j < vocabulary; ++j) partition += std::exp(z[j]);
    for (std::int64_t j = 0; j < vocabulary; ++j) {
      const double q = smoothing / static_cast<double>(vocabulary) + (j == target ? 1 - smoothing : 0);
      total -= q * (z[j] - std::log(partition));
    }
    ++counted;
  }
  EXPECT_NEAR(session.tensor<double>("loss")[0], total / counted, 1e-12);
}

TEST(CrossEntropy, Derivative) {
  for (const double smoothing : {0.0, 0.1}) {
    check_gradients(
        [&](Graph& g) {
          const Wire z = g.input("z", {{2, 3, 11}, DType::f64}), t = g.input("targets", {{2, 3}, DType::i32});
          return cross_entropy(z, t, g.fill({{1}, DType::f64}, smoothing));
        },
        {"z"}, {.prepare = [](CpuSession& s) { fill_targets(s, 11, 4); }});
  }
}

TEST(CrossEntropy, AgreesWithItsReferenceAtAwkwardSizes) {
  for (const std::int64_t vocabulary : {1, 31, 33, 1023}) {
    const auto run = [&](bool fused) {
      Graph g;
      const Wire in[] = {g.input("z", {{3, 5, vocabulary}, DType::f64}), g.input("targets", {{3, 5}, DType::i32}),
                         g.input("smoothing", {{1}, DType::f64})};
      const CrossEntropy op{{}};
      const Wires out = fused ? g.apply(std::make_shared<CrossEntropy>(op.options()), in) : op.reference(in);
      const Wire wrt[] = {in[0]};
      g.output("loss", out[0]);
      g.output("lse", out[1]);
      g.output("dz", differentiate(out[0], wrt)[0]);
      CpuSession session(test::plain_plan(g));
      test::randomise_all(session);
      session.tensor<double>("smoothing")[0] = 0.1;
      fill_targets(session, static_cast<std::int32_t>(vocabulary), 4);
      session.run();
      std::vector<double> all;
      for (const char* name : {"loss", "lse", "dz"})
        all.insert(all.end(), session.tensor<double>(name).begin(), session.tensor<double>(name).end());
      return all;
    };
    const std::vector<double> fused = run(true), reference = run(false);
    for (std::size_t i = 0; i < fused.size(); ++i)
      EXPECT_NEAR(fused[i], reference[i], 1e-12) << i << " of vocabulary " << vocabulary;
  }
}

TEST(CrossEntropy, SecondDerivative) {
  check_gradients(
      [](Graph& g) {
        const Wire z = g.input("z", {{4, 7}, DType::f64}), t = g.input("targets", {{4}, DType::i32});
        const Wire wrt[] = {z};
        return sum_all(square(differentiate(cross_entropy(z, t, g.fill({{1}, DType::f64}, 0.1)), wrt)[0]));
      },
      {"z"}, {.prepare = [](CpuSession& s) { fill_targets(s, 7, 4); }});
}

TEST(OneHot, IsZeroWhereIgnoredAndNaNOutside) {
  Graph g;
  g.output("hot", one_hot(g.input("targets", {{4}, DType::i32}), 3, -100, DType::f32));
  CpuSession session(test::plain_plan(g));
  session.write<std::int32_t>("targets", std::array{2, -100, 3, -1});
  session.run();
  const std::span<float> hot = session.tensor<float>("hot");
  EXPECT_EQ(std::vector<float>(hot.begin(), hot.begin() + 6), (std::vector<float>{0, 0, 1, 0, 0, 0}));
  for (std::size_t i = 6; i < 12; ++i) EXPECT_TRUE(std::isnan(hot[i])) << i;
  Graph wrong;
  EXPECT_NE(test::error_of([&] {
              one_hot(wrong.input("x", {{4}, DType::f32}), 3, -100, DType::f32);
            }).find("i32"),
            std::string::npos);
}

class FusedProjection : public testing::TestWithParam<Transpose> {};

TEST_P(FusedProjection, Derivative) {
  const Transpose transpose = GetParam();
  check_gradients(
      [&](Graph& g) {
        const Wire x = g.input("x", {{7, 5}, DType::f64}), t = g.input("targets", {{7}, DType::i32});
        const Wire w = g.parameter("w", {transpose == Transpose::yes ? Shape{13, 5} : Shape{5, 13}, DType::f64});
        return linear_cross_entropy(x, w, t, g.fill({{1}, DType::f64}, 0.1), {.weight = transpose});
      },
      {"x", "w"}, {.prepare = [](CpuSession& s) { fill_targets(s, 13, 3); }});
}

// Large enough for several blocks and several chunks of the backward.
TEST_P(FusedProjection, EqualsReferenceInManyChunks) {
  const Transpose transpose = GetParam();
  const std::int64_t rows = test::kSanitized ? 30 : 300, width = 24, vocabulary = 12345;
  const auto run = [&](bool fused, int threads) {
    Graph g;
    const Wire x = g.input("x", {{rows, width}, DType::f32}), t = g.input("targets", {{rows}, DType::i32});
    const Wire w = g.parameter(
        "w", {transpose == Transpose::yes ? Shape{vocabulary, width} : Shape{width, vocabulary}, DType::f32});
    const CrossEntropyOptions options{.weight = transpose};
    const Wire in[] = {x, w, t, g.fill({{1}, DType::f32}, 0.05)};
    const Wire loss =
        fused ? linear_cross_entropy(x, w, t, in[3], options) : LinearCrossEntropy(options).reference(in)[0];
    const Wire wrt[] = {x, w};
    const Wires d = differentiate(loss, wrt);
    g.output("loss", loss);
    g.output("dx", d[0]);
    g.output("dw", d[1]);
    CpuSession session(test::plain_plan(g), {.members = 1, .threads = threads});
    test::randomise_all(session);
    fill_targets(session, static_cast<std::int32_t>(vocabulary), 7);
    session.run();
    std::vector<float> result;
    for (const char* name : {"loss", "dx", "dw"}) {
      for (const float v : session.tensor<float>(name)) result.push_back(v);
    }
    return result;
  };
  const std::vector<float> fused = run(true, 2), plain = run(false, 2);
  ASSERT_EQ(fused.size(), plain.size());
  double largest = 0;
  for (std::size_t i = 1; i < plain.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(plain[i])));
  EXPECT_GT(largest, 0);
  EXPECT_NEAR(fused[0], plain[0], 4 * epsilon_of(DType::f32) * plain[0]);
  for (std::size_t i = 1; i < plain.size(); ++i)
    ASSERT_NEAR(fused[i], plain[i], 64 * epsilon_of(DType::f32) * largest) << i;
  EXPECT_EQ(fused, run(true, 1));
  EXPECT_EQ(fused, run(true, 3));
}

INSTANTIATE_TEST_SUITE_P(Weights, FusedProjection, testing::Values(Transpose::no, Transpose::yes),
                         [](const auto& test) { return test.param == Transpose::no ? "plain" : "tied"; });

TEST(CrossEntropy, BadTargetGivesNanNotAStrayAccess) {
  Graph g;
  const Wire z = g.input("z", {{3, 5}, DType::f32}), t = g.input("targets", {{3}, DType::i32});
  const Wire wrt[] = {z};
  const Wire loss = cross_entropy(z, t);
  g.output("dz", differentiate(loss, wrt)[0]);
  g.output("loss", loss);
  CpuSession session(test::plain_plan(g));
  test::randomise_all(session);
  session.write<std::int32_t>("targets", std::array<std::int32_t, 3>{1, 5, 2});
  session.run();
  EXPECT_TRUE(std::isnan(session.tensor<float>("loss")[0]));
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(std::isnan(session.tensor<float>("dz")[i]), i / 5 == 1) << i;
}

TEST(CrossEntropy, WrongTargetsAreNamed) {
  Graph g;
  const Wire z = g.input("z", {{3, 5}, DType::f32}), t = g.input("t", {{4}, DType::i32});
  EXPECT_EQ(test::error_of([&] { cross_entropy(z, t); }),
            "cross_entropy(z f32[3, 5], t i32[4], fill(f32[1], 0) f32[1]): targets must be i32[3] but is i32[4]");
}

}  // namespace
}  // namespace norma
