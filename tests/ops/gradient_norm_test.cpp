// The norm over many gradients, clipping, and gradients gathered over batches.
#include "norma/ops/gradient_norm.h"

#include <cmath>
#include <limits>

#include "check.h"

namespace norma {
namespace {

TEST(GradientNorm, IsThatOfAllGradientsTogether) {
  const std::vector<std::int64_t> sizes = {1, 31, 16384, 16385, 40000, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  Graph g;
  Wires gradients;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    gradients.push_back(g.input("g" + std::to_string(i), {{sizes[i]}, DType::f64}));
  const GradientNorm norm = gradient_norm(gradients, g.input("clip", {{1}, DType::f64}));
  g.output("norm", norm.norm);
  g.output("scale", norm.scale);
  g.output("squares", norm.squares);
  CpuSession session(test::plain_plan(g));
  double total = 0;
  std::vector<double> squares;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string name = "g" + std::to_string(i);
    test::randomise<double>(session, name, i + 1);
    double sum = 0;
    for (const double x : session.tensor<double>(name)) sum += x * x;
    squares.push_back(sum);
    total += sum;
  }
  for (const double clip : {0.0, 1.0, 1e6}) {
    session.write<double>("clip", std::array{clip});
    session.run();
    EXPECT_NEAR(session.tensor<double>("norm")[0], std::sqrt(total), 1e-9);
    const double scale = clip == 1.0 ? 1 / std::sqrt(total) : 1;
    EXPECT_NEAR(session.tensor<double>("scale")[0], scale, 1e-12) << clip;
  }
  for (std::size_t i = 0; i < sizes.size(); ++i)
    EXPECT_NEAR(session.tensor<double>("squares")[i], squares[i], 1e-9 * squares[i]);
  session.tensor<double>("g4")[39999] = std::numeric_limits<double>::infinity();
  session.run();
  EXPECT_FALSE(std::isfinite(session.tensor<double>("norm")[0]));
  EXPECT_FALSE(std::isfinite(session.tensor<double>("scale")[0]));
}

TEST(Accumulate, StartsAnewWithTheFirstBatch) {
  Graph g;
  const Wire gradient = g.input("g", {{10000}, DType::f32}), first = g.input("first", {{1}, DType::f32});
  g.output("sum", accumulate_gradient(gradient, first, "p"));
  CpuSession session(test::plain_plan(g));
  session.tensor<float>("p/sum")[0] = std::numeric_limits<float>::quiet_NaN();  // what was there does not matter
  std::vector<float> expected(10000, 0);
  for (int batch = 0; batch < 3; ++batch) {
    test::randomise<float>(session, "g", static_cast<std::uint64_t>(batch + 1));
    session.write<float>("first", std::array{batch == 0 ? 1.0f : 0.0f});
    session.run();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] += session.tensor<float>("g")[i];
      ASSERT_EQ(session.tensor<float>("sum")[i], expected[i]);
    }
  }
}

}  // namespace
}  // namespace norma
