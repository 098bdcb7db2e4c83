// A layer made again with the gradient through its activation, against the two apart: values, derivative, errors.
#include "norma/ops/linear_slope.h"

#include "check.h"
#include "norma/ops/linear.h"
#include "norma/ops/matmul_slope.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

TEST(LinearSlope, IsALayerAndTheGradientThroughIt) {
  for (const Activation f : {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    for (const bool bias : {true, false}) {
      Graph g;
      const Wire dy = g.input("dy", {{17, 5}, DType::f64}), v = g.input("v", {{33, 5}, DType::f64});
      const Wire x = g.input("x", {{17, 7}, DType::f64}), w = g.input("w", {{7, 33}, DType::f64});
      const Wire b = bias ? g.input("b", {{33}, DType::f64}) : Wire();
      const Wires both = linear_slope(dy, v, x, w, b, f, Transpose::yes);
      g.output("dz", both[0]);
      g.output("y", both[1]);
      Wire z = matmul_rows(x, w);
      if (bias) z = z + b;
      const Wire y = activate(z, f);
      g.output("dz apart", activate_backward(z, y, matmul_rows(dy, v, Transpose::yes), f));
      g.output("y apart", y);
      CpuSession session(test::plain_plan(g));
      test::randomise_all(session);
      session.run();
      for (const std::string name : {"dz", "y"}) {
        const auto found = session.tensor<double>(name), expected = session.tensor<double>(name + " apart");
        ASSERT_EQ(found.size(), 17u * 33u);
        for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << name << " " << i;
      }
    }
  }
}

TEST(LinearSlope, Gradients) {
  check_gradients(
      [](Graph& g) {
        const Wire dy = g.input("dy", {{3, 5}, DType::f64}), v = g.parameter("v", {{5, 4}, DType::f64});
        const Wire x = g.input("x", {{3, 2}, DType::f64}), w = g.parameter("w", {{2, 4}, DType::f64});
        const Wire b = g.parameter("b", {{4}, DType::f64});
        const Wires both = linear_slope(dy, v, x, w, b, Activation::silu, Transpose::no);
        return sum_all(square(both[0])) + sum_all(square(both[1]) * both[0]);
      },
      {"dy", "v", "x", "w", "b"});
}

TEST(LinearSlope, RefusesWhatDoesNotFit) {
  Graph g;
  const auto given = [&](const std::string& name, const Shape& shape) { return g.input(name, {shape, DType::f32}); };
  const Wire dy = given("dy", {3, 5}), v = given("v", {4, 5}), x = given("x", {3, 2}), w = given("w", {2, 4});
  const auto error = [&](Wire gradient, Wire turned, Wire layer, Wire bias) {
    return error_of([&] { linear_slope(gradient, turned, x, layer, bias, Activation::gelu, Transpose::yes); });
  };
  EXPECT_NE(error(given("long", {3, 6}), v, w, {}).find("the gradient has 6 channels, not 5"), std::string::npos);
  EXPECT_NE(error(dy, v, given("deep", {3, 4}), {}).find("the input has 2 channels but the weight [3, 4] takes 3"),
            std::string::npos);
  EXPECT_NE(
      error(dy, given("wide", {6, 5}), w, {}).find("the gradient becomes [3, 6] but the layer's output is [3, 4]"),
      std::string::npos);
  EXPECT_NE(error(dy, v, w, given("b", {5})).find("the bias must be f32[4] but is f32[5]"), std::string::npos);
}

}  // namespace
}  // namespace norma
