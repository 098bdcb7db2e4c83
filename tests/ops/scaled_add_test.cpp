// z = a x + b y: derivative through the reference, kernel against reference, errors.
#include "norma/ops/scaled_add.h"

#include "check.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

TEST(ScaledAdd, Gradients) {
  for (const std::int64_t width : {1, 5, 33}) {
    check_gradients(
        [&](Graph& g) {
          const Type type{{3, width}, DType::f64};
          const Wire x = g.input("x", type), y = g.input("y", type);
          const Wire a = g.parameter("a", {{width}, DType::f64}), b = g.parameter("b", {{1}, DType::f64});
          return sum_all(square(scaled_add(x, a, y, b)));
        },
        {"x", "y", "a", "b"});
  }
}

// The second term is computed from the first, as in every residual block.
TEST(ScaledAdd, GradientsOfAResidualBlock) {
  check_gradients(
      [](Graph& g) {
        const Wire x = g.input("x", {{3, 5}, DType::f64});
        return sum_all(square(scaled_add(x, g.parameter("alpha", {{1}, DType::f64}), tanh(x))));
      },
      {"x", "alpha"});
}

TEST(ScaledAdd, KernelEqualsReference) {
  for (const std::int64_t width : {1, 31, 32, 33, 1023}) {
    Graph g;
    const Type type{{17, width}, DType::f32};
    const Wire x = g.input("x", type), y = g.input("y", type);
    const Wire a = g.parameter("a", {{width}, DType::f32}), b = g.parameter("b", {{1}, DType::f32});
    const Wire fused = scaled_add(x, a, y, b);
    g.output("fused", fused);
    g.output("reference", x * a + y * b);
    CpuSession session(test::plain_plan(g));
    test::randomise_all(session);
    session.run();
    const auto left = session.tensor<float>("fused"), right = session.tensor<float>("reference");
    for (std::size_t i = 0; i < left.size(); ++i) {
      // Three roundings against two: one unit in the last place of the larger product.
      EXPECT_NEAR(left[i], right[i], 4 * epsilon_of(DType::f32) * (1 + std::abs(right[i]))) << width << " " << i;
    }
  }
}

TEST(ScaledAdd, RefusesScalesThatDoNotFit) {
  Graph g;
  const Wire x = g.input("x", {{3, 5}, DType::f32}), y = g.input("y", {{3, 5}, DType::f32});
  const Wire a = g.parameter("alpha", {{3}, DType::f32});
  EXPECT_NE(error_of([&] { scaled_add(x, a, y); }).find("a scale must be one number or [5] but is f32[3]"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
