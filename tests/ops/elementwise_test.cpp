// Elementary ops: values, broadcasting, reductions, derivatives, NaN.
#include "norma/ops/elementwise.h"

#include <limits>

#include "check.h"
#include "norma/graph/sum.h"
#include "norma/ops/scaled_add.h"

namespace norma {
namespace {

using test::check_gradients;

class UnaryFunction : public testing::TestWithParam<Unary> {};

TEST_P(UnaryFunction, Derivative) {
  const Unary function = GetParam();  // step is piecewise constant; the factor x carries its gradient
  check_gradients(
      [&](Graph& g) {
        // Positive arguments away from zero, so that log, sqrt and friends are smooth.
        const Wire x = exp(g.input("x", {{37}, DType::f64}) * 0.5);
        return sum_all(unary(function, x) * x);
      },
      {"x"});
}

TEST_P(UnaryFunction, NanInNanOutAndF32AgreesWithF64) {
  const Unary function = GetParam();
  Graph g;
  g.output("y32", unary(function, g.input("x32", {{35}, DType::f32})));
  g.output("y64", unary(function, g.input("x64", {{35}, DType::f64})));
  CpuSession session(test::plain_plan(g));
  const std::span<float> x32 = session.tensor<float>("x32");
  const std::span<double> x64 = session.tensor<double>("x64");
  for (std::size_t i = 0; i < x32.size(); ++i) {
    x32[i] = 0.1f + 0.2f * static_cast<float>(i);
    x64[i] = static_cast<double>(x32[i]);
  }
  x32[3] = x32[34] = std::numeric_limits<float>::quiet_NaN();
  x64[3] = x64[34] = std::numeric_limits<double>::quiet_NaN();
  session.run();
  for (std::size_t i = 0; i < x32.size(); ++i) {
    const double y64 = session.tensor<double>("y64")[i];
    const double y32 = static_cast<double>(session.tensor<float>("y32")[i]);
    if (i == 3 || i == 34) {
      EXPECT_TRUE(std::isnan(y32) && std::isnan(y64)) << i;
    } else {
      EXPECT_NEAR(y32, y64, 4 * epsilon_of(DType::f32) * (1 + std::abs(y64))) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnaryFunction,
                         testing::Values(Unary::neg, Unary::exp, Unary::log, Unary::sqrt, Unary::rsqrt,
                                         Unary::reciprocal, Unary::square, Unary::tanh, Unary::erf, Unary::sigmoid,
                                         Unary::step, Unary::sin, Unary::cos),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// The same value in whole vectors and in the last lanes, from denormals to infinity.
TEST(Tanh, IsCloseEverywhereAndTheSameInEveryLane) {
  constexpr std::int64_t kValues = 20003;
  Graph g;
  g.output("y", tanh(g.input("x", {{kValues}, DType::f32})));
  g.output("one", tanh(g.input("alone", {{1}, DType::f32})));
  CpuSession session(test::plain_plan(g));
  const std::span<float> x = session.tensor<float>("x"), y = session.tensor<float>("y");
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::exp2(-140.0f + 260.0f * static_cast<float>(i) / kValues) * (i % 2 == 0 ? 1.0f : -1.0f);
  x[x.size() - 1] = std::numeric_limits<float>::infinity();
  x[0] = -std::numeric_limits<float>::infinity();
  session.run();
  const std::vector<float> results(y.begin(), y.end()), arguments(x.begin(), x.end());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const double expected = std::tanh(static_cast<double>(arguments[i]));
    EXPECT_NEAR(results[i], expected, 4e-7 * std::abs(expected) + 1e-44) << arguments[i];
    EXPECT_LE(std::abs(results[i]), 1.0f) << arguments[i];
    if (i % 100 != 0) continue;
    session.tensor<float>("alone")[0] = arguments[i];
    session.run();
    EXPECT_EQ(session.tensor<float>("one")[0], results[i]) << arguments[i];
  }
}

TEST(Exp, CoversTheWholeRange) {
  Graph g;
  g.output("y", exp(g.input("x", {{6}, DType::f32})));
  CpuSession session(test::plain_plan(g));
  const float inf = std::numeric_limits<float>::infinity();
  session.write<float>("x", std::array{0.0f, -inf, inf, 1000.0f, -1000.0f, 88.0f});
  session.run();
  const std::span<float> y = session.tensor<float>("y");
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], 0.0f);
  EXPECT_EQ(y[2], inf);
  EXPECT_EQ(y[3], inf);
  EXPECT_EQ(y[4], 0.0f);
  EXPECT_NEAR(y[5], std::exp(88.0f), 1e-6f * std::exp(88.0f));
}

TEST(Broadcast, DerivativesOverEveryPattern) {
  for (const Shape& shape :
       {Shape{2, 3, 5}, Shape{5}, Shape{1}, Shape{3, 1}, Shape{2, 1, 5}, Shape{1, 3, 1}, Shape{2, 1, 1}}) {
    for (const Binary function : {Binary::add, Binary::sub, Binary::mul, Binary::div}) {
      check_gradients(
          [&](Graph& g) {
            const Wire a = g.input("a", {{2, 3, 5}, DType::f64}), b = exp(g.input("b", {shape, DType::f64}) * 0.3);
            return sum_all(square(binary(function, a, b)) + binary(function, exp(a * 0.2), b));
          },
          {"a", "b"});
    }
  }
}

TEST(Reduce, EveryPatternSumsToTheSameTotal) {
  Graph g;
  const Wire x = g.input("x", {{3, 4, 37}, DType::f64});
  const std::vector<Shape> shapes = {{3, 4, 37}, {37}, {3, 4, 1}, {1}, {4, 37}, {3, 1, 37}, {1, 4, 1}, {3, 1, 1}};
  for (std::size_t i = 0; i < shapes.size(); ++i) g.output("s" + std::to_string(i), sum_all(sum_to(x, shapes[i])));
  CpuSession session(test::plain_plan(g));
  test::randomise_all(session);
  session.run();
  const double total = session.tensor<double>("s0")[0];
  EXPECT_NE(total, 0);
  for (std::size_t i = 1; i < shapes.size(); ++i)
    EXPECT_NEAR(session.tensor<double>("s" + std::to_string(i))[0], total, 1e-12) << shapes[i].str();
}

TEST(Reduce, LongSumsHaveTheSameBitsForAnyThreads) {
  const auto run = [](int threads) {
    Graph g;
    const Wire x = g.input("x", {{1000, 129}, DType::f32});
    g.output("columns", sum_to(x, {129}));
    g.output("all", sum_all(x));
    g.output("rows", sum_last(x));
    CpuSession session(test::plain_plan(g), {.members = 1, .threads = threads});
    test::randomise_all(session);
    session.run();
    std::vector<float> result;
    for (const char* name : {"columns", "all", "rows"}) {
      for (const float v : session.tensor<float>(name)) result.push_back(v);
    }
    return result;
  };
  EXPECT_EQ(run(1), run(2));
  EXPECT_EQ(run(1), run(3));
}

TEST(Sum, ManyTermsAndRepeatedTerms) {
  Graph g;
  const Wire x = g.input("x", {{5}, DType::f64});
  Wires terms;
  for (int i = 0; i < 60; ++i) terms.push_back(x * static_cast<double>(i));
  g.output("y", sum(terms));
  g.output("z", x + x);
  CpuSession session(test::plain_plan(g));
  test::randomise_all(session);
  session.run();
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(session.tensor<double>("y")[i], 1770 * session.tensor<double>("x")[i], 1e-9);
    EXPECT_EQ(session.tensor<double>("z")[i], 2 * session.tensor<double>("x")[i]);
  }
}

TEST(ScaledAdd, DerivativesForNumbersAndVectors) {
  for (const Shape& a : {Shape{1}, Shape{33}}) {
    for (const Shape& b : {Shape{1}, Shape{33}}) {
      check_gradients(
          [&](Graph& g) {
            const Wire x = g.input("x", {{3, 33}, DType::f64}), y = g.input("y", {{3, 33}, DType::f64});
            return sum_all(
                square(scaled_add(x, g.parameter("a", {a, DType::f64}), y, g.parameter("b", {b, DType::f64}))));
          },
          {"x", "y", "a", "b"});
    }
  }
}

TEST(Elementwise, MismatchedShapesAreNamed) {
  Graph g;
  const Wire a = g.input("a", {{2, 3}, DType::f32}), b = g.input("b", {{4}, DType::f32}),
             c = g.input("c", {{2, 3}, DType::f64});
  EXPECT_EQ(test::error_of([&] { a* b; }),
            "mul(a f32[2, 3], b f32[4]): shapes [2, 3] and [4] do not broadcast: 3 meets 4");
  EXPECT_EQ(test::error_of([&] { a* c; }), "mul(a f32[2, 3], c f64[2, 3]): f32[2, 3] and f64[2, 3] differ in dtype");
}

}  // namespace
}  // namespace norma
