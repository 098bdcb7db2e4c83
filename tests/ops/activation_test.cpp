// Activations: derivative, second derivative through the reference, fused = reference, NaN, awkward sizes.
#include "norma/ops/activation.h"

#include <limits>

#include "check.h"

namespace norma {
namespace {

using test::check_gradients;

class Activations : public testing::TestWithParam<Activation> {};

TEST_P(Activations, FirstAndSecondDerivative) {
  const Activation activation = GetParam();
  check_gradients(
      [&](Graph& g) {
        return sum_all(square(activate(g.input("x", {{53}, DType::f64}), activation)));
      },
      {"x"});
  if (activation == Activation::relu) return;  // its second derivative is zero
  check_gradients(
      [&](Graph& g) {
        const Wire x = g.input("x", {{21}, DType::f64});
        const Wire wrt[] = {x};
        return sum_all(square(differentiate(sum_all(activate(x, activation)), wrt)[0]));
      },
      {"x"}, {.tolerance = 1e-6});
}

TEST_P(Activations, KernelEqualsReference) {
  const Activation activation = GetParam();
  for (const std::int64_t n : {1, 31, 32, 33, 1023}) {
    Graph g;
    const Wire x = g.input("x", {{n}, DType::f64}), single = g.input("s", {{n}, DType::f32});
    const Wire in[] = {x};
    g.output("fused", activate(x, activation));
    g.output("reference", ActivationOp(activation).reference(in)[0]);
    g.output("f32", activate(single, activation));
    CpuSession session(test::plain_plan(g));
    test::randomise<double>(session, "x", 3, 0, 3);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      session.tensor<float>("s")[i] = static_cast<float>(session.tensor<double>("x")[i]);
    }
    session.run();
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const double expected = session.tensor<double>("reference")[i];
      ASSERT_NEAR(session.tensor<double>("fused")[i], expected, 1e-14 * (1 + std::abs(expected)));
      ASSERT_NEAR(session.tensor<float>("f32")[i], expected,
                  4 * epsilon_of(DType::f32) * (1 + std::abs(session.tensor<double>("x")[i])));
    }
  }
}

TEST_P(Activations, NanInNanOut) {
  Graph g;
  const Wire x = g.input("x", {{19}, DType::f32});
  const Wire wrt[] = {x};
  const Wire y = activate(x, GetParam());
  g.output("dx", differentiate(sum_all(y), wrt)[0]);
  g.output("y", y);
  CpuSession session(test::plain_plan(g));
  test::randomise_all(session);
  session.tensor<float>("x")[5] = session.tensor<float>("x")[18] = std::numeric_limits<float>::quiet_NaN();
  session.run();
  for (std::size_t i = 0; i < 19; ++i) {
    EXPECT_EQ(std::isnan(session.tensor<float>("y")[i]), i == 5 || i == 18) << i;
    EXPECT_EQ(std::isnan(session.tensor<float>("dx")[i]), i == 5 || i == 18) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Activations,
                         testing::Values(Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(SwiGlu, DerivativesAndReference) {
  check_gradients([](Graph& g) { return sum_all(square(swiglu(g.input("x", {{3, 34}, DType::f64})))); }, {"x"});
  check_gradients(
      [](Graph& g) {
        const Wire x = g.input("x", {{2, 10}, DType::f64});
        const Wire wrt[] = {x};
        return sum_all(square(differentiate(sum_all(swiglu(x)), wrt)[0]));
      },
      {"x"}, {.tolerance = 1e-6});
  Graph g;
  const Wire in[] = {g.input("x", {{5, 66}, DType::f64})};
  g.output("difference", sum_all(square(swiglu(in[0]) - SwiGlu().reference(in)[0])));
  CpuSession session(test::plain_plan(g));
  test::randomise_all(session);
  session.run();
  EXPECT_LT(session.tensor<double>("difference")[0], 1e-26);
}

TEST(Activation, UnknownNameSuggestsTheNearest) {
  EXPECT_EQ(test::error_of([] { parse_activation("gelutanh"); }),
            "unknown activation 'gelutanh' (did you mean 'gelu_tanh'?); expected none, relu, gelu, gelu_tanh or silu");
}

}  // namespace
}  // namespace norma
