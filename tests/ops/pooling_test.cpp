// Pooling: gradients, ties, padding, NaN, and means.
#include "norma/ops/pooling.h"

#include <limits>

#include "check.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

TEST(Pooling, Gradients) {
  for (const PoolingOptions& options : {PoolingOptions{}, {3, 2, 1}, {3, 1, 1}, {2, 3, 0}}) {
    SCOPED_TRACE(MaxPool(options).attributes());
    const auto pooled = [&](Graph& g) { return max_pool(g.input("x", {{2, 5, 7, 3}, DType::f64}), options); };
    check_gradients([&](Graph& g) { return sum_all(square(pooled(g))); }, {"x"}, {.most_elements = 210});
    check_gradients(
        [&](Graph& g) {
          const Wire loss = sum_all(square(square(pooled(g))));
          return sum_all(square(differentiate(loss, Wires{g.find("x")})[0]));
        },
        {"x"}, {.tolerance = 1e-5});
  }
}

TEST(Pooling, MeansHaveTheirGradients) {
  check_gradients(
      [](Graph& g) {
        return sum_all(square(average_pool(g.input("x", {{2, 6, 4, 3}, DType::f64}), 2)));
      },
      {"x"});
  check_gradients(
      [](Graph& g) {
        return sum_all(square(global_average_pool(g.input("x", {{2, 5, 3, 4}, DType::f64}))));
      },
      {"x"});
}

std::vector<float> pooled(const std::vector<float>& image, Shape shape, const std::function<Wire(Wire)>& pool) {
  Graph g;
  g.output("y", pool(g.input("x", {shape, DType::f32})));
  CpuSession session(test::plain_plan(g));
  session.write<float>("x", image, 0);
  session.run();
  const std::span<float> y = session.tensor<float>("y");
  return {y.begin(), y.end()};
}

TEST(Pooling, TakesTheLargestOfEachWindow) {
  const std::vector<float> image = {-1, -2, -3, -4, -5, -6, -7, -8, -9};
  const auto max_of = [](PoolingOptions options) { return [=](Wire x) { return max_pool(x, options); }; };
  EXPECT_EQ(pooled(image, {1, 3, 3, 1}, max_of({2, 1, 0})), (std::vector<float>{-1, -2, -4, -5}));
  EXPECT_EQ(pooled(image, {1, 3, 3, 1}, max_of({3, 2, 1})), (std::vector<float>{-1, -2, -4, -5}))
      << "padding is never the largest";
  std::vector<float> broken = image;
  broken[4] = std::numeric_limits<float>::quiet_NaN();
  for (const float y : pooled(broken, {1, 3, 3, 1}, max_of({2, 1, 0}))) EXPECT_TRUE(std::isnan(y));
}

TEST(Pooling, MeansAreMeans) {
  const std::vector<float> image = {1, 10, 2, 20, 3, 30, 4, 40};  // [2, 2, 2 channels]
  EXPECT_EQ(pooled(image, {1, 2, 2, 2}, [](Wire x) { return average_pool(x, 2); }), (std::vector<float>{2.5, 25}));
  EXPECT_EQ(pooled(image, {1, 2, 2, 2}, global_average_pool), (std::vector<float>{2.5, 25}));
}

TEST(Pooling, RefusesWhatDoesNotFit) {
  Graph g;
  const Wire x = g.input("x", {{2, 4, 6, 3}, DType::f32}), flat = g.input("flat", {{2, 4}, DType::f32});
  EXPECT_NE(error_of([&] { max_pool(flat); }).find("needs images"), std::string::npos);
  EXPECT_NE(error_of([&] { max_pool(x, {5, 1, 0}); }).find("a window of 5 does not fit"), std::string::npos);
  EXPECT_NE(error_of([&] { max_pool(x, {2, 1, 2}); }).find("padding of at most half the size"), std::string::npos);
  EXPECT_NE(error_of([&] { average_pool(x, 4); }).find("does not divide into windows of 4 x 4"), std::string::npos);
  EXPECT_NE(error_of([&] { global_average_pool(flat); }).find("needs [batch, positions.., channels]"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
