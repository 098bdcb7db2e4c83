// Views and copies: values against index arithmetic, derivatives against central differences.
#include "norma/ops/views.h"

#include <limits>
#include <numeric>

#include "check.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

// A weight that differs everywhere, so that a misplaced gradient cannot hide.
Wire weighted(Graph& g, Wire x) { return sum_all(x * g.input("weight", x.type())); }

std::vector<float> run_on_counting(const std::function<Wire(Graph&, Wire)>& build, Shape shape) {
  Graph g;
  const Wire x = g.input("x", {shape, DType::f32});
  g.output("y", build(g, x));
  CpuSession session(test::plain_plan(g));
  std::iota(session.tensor<float>("x").begin(), session.tensor<float>("x").end(), 0.0f);
  session.run();
  const auto y = session.tensor<float>("y");
  return {y.begin(), y.end()};
}

TEST(Views, SliceOfLeadingRowsIsAView) {
  const auto y = run_on_counting([](Graph&, Wire x) { return slice_rows(x, 1, 2); }, {4, 3});
  EXPECT_EQ(y, (std::vector<float>{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(Slice(0, 1, 2).view_offset(std::vector<Type>{{{4, 3}, DType::f32}}), 12);
  EXPECT_EQ(Slice(-1, 1, 2).view_offset(std::vector<Type>{{{4, 3}, DType::f32}}), -1);
  EXPECT_EQ(Slice(1, 2, 1).view_offset(std::vector<Type>{{{1, 3, 5}, DType::f64}}), 80);
}

TEST(Views, SliceOfLastAxisCopies) {
  const auto y = run_on_counting([](Graph&, Wire x) { return slice_last(x, 1, 2); }, {2, 4});
  EXPECT_EQ(y, (std::vector<float>{1, 2, 5, 6}));
}

TEST(Views, ArithmeticAfterAViewLeavesItsBaseAlone) {
  const auto y = run_on_counting(
      [](Graph&, Wire x) {
        const Wire a = x + 1.0;
        const Wire doubled = slice_rows(a, 0, 2) * 2.0;
        return concat_last(std::vector<Wire>{doubled, slice_rows(a, 0, 2)});
      },
      {3, 2});
  EXPECT_EQ(y, (std::vector<float>{2, 4, 1, 2, 6, 8, 3, 4}));
}

TEST(Views, ConcatAlongAMiddleAxis) {
  const auto y = run_on_counting(
      [](Graph&, Wire x) {
        return concat(std::vector<Wire>{slice(x, 1, 1, 1), x}, 1);
      },
      {2, 2, 2});
  EXPECT_EQ(y, (std::vector<float>{2, 3, 0, 1, 2, 3, 6, 7, 4, 5, 6, 7}));
}

TEST(Views, PermuteMovesEveryElement) {
  const auto y = run_on_counting([](Graph&, Wire x) { return permute(x, {2, 0, 1}); }, {2, 3, 5});
  for (std::size_t c = 0; c < 5; ++c)
    for (std::size_t a = 0; a < 2; ++a)
      for (std::size_t b = 0; b < 3; ++b)
        EXPECT_EQ(y[c * 6 + a * 3 + b], static_cast<float>(a * 15 + b * 5 + c)) << a << b << c;
}

TEST(Views, Gradients) {
  const Type x_type{{3, 4, 5}, DType::f64};
  check_gradients([&](Graph& g) { return weighted(g, reshape(g.input("x", x_type), {12, 5})); }, {"x"});
  check_gradients([&](Graph& g) { return weighted(g, slice_rows(g.input("x", x_type), 1, 2)); }, {"x"});
  check_gradients([&](Graph& g) { return weighted(g, slice_last(g.input("x", x_type), 1, 3)); }, {"x"});
  check_gradients([&](Graph& g) { return weighted(g, pad(g.input("x", x_type), 1, 2, 7)); }, {"x"});
  check_gradients([&](Graph& g) { return weighted(g, permute(g.input("x", x_type), {2, 0, 1})); }, {"x"});
  check_gradients([&](Graph& g) { return weighted(g, swap_axes(g.input("x", x_type), 1, -1)); }, {"x"});
  check_gradients(
      [&](Graph& g) {
        const Wire x = g.input("x", x_type), y = g.input("y", {{3, 4, 2}, DType::f64});
        return weighted(g, square(concat_last(std::vector<Wire>{y, x, y})));
      },
      {"x", "y"});
}

TEST(Views, CastRoundsOnceAndBack) {
  Graph g;
  const Wire x = g.input("x", {{5}, DType::f64});
  const Wire low = cast(cast(x, DType::bf16), DType::f64);
  g.output("f32", cast(x, DType::f32));
  g.output("low", low);
  g.output("dx", differentiate(sum_all(low * x), std::vector<Wire>{x})[0]);
  CpuSession session(test::plain_plan(g));
  // 1 + 2^-8 + 2^-40 lies just above the middle of two bf16 numbers; rounding through f32 first would round it down.
  const std::vector<double> values = {1.5, 1.0 + 0x1p-8 + 0x1p-40, -(1.0 + 0x1p-8), 1e300,
                                      std::numeric_limits<double>::quiet_NaN()};
  session.write<double>("x", values);
  session.run();
  const auto y = session.tensor<double>("low"), dx = session.tensor<double>("dx");
  EXPECT_EQ(y[0], 1.5);
  EXPECT_EQ(y[1], 1.0 + 0x1p-7);
  EXPECT_EQ(y[2], -1.0);
  EXPECT_EQ(y[3], std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(y[4]));
  EXPECT_EQ(session.tensor<float>("f32")[1], static_cast<float>(values[1]));
  EXPECT_EQ(dx[0], 3.0);  // both factors
}

TEST(Views, ErrorsSayWhatWasGiven) {
  Graph g;
  const Wire x = g.input("x", {{4, 6}, DType::f32}), tokens = g.input("t", {{4}, DType::i32});
  EXPECT_NE(error_of([&] { reshape(x, {5, 5}); }).find("[4, 6] has 24 elements but [5, 5] has 25"), std::string::npos);
  EXPECT_NE(error_of([&] { slice_rows(x, 3, 2); }).find("entries 3 to 4 asked of axis 0, which has 4"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              permute(x, {0, 0});
            }).find("[0, 0] is not an order of the 2 axes of [4, 6]"),
            std::string::npos);
  EXPECT_NE(error_of([&] { slice(x, 2, 0, 1); }).find("[4, 6] has no axis 2"), std::string::npos);
  EXPECT_NE(error_of([&] { cast(tokens, DType::f32); }).find("i32[4] to f32"), std::string::npos);
  EXPECT_NE(error_of([&] {
              concat_last(std::vector<Wire>{x, slice_rows(x, 0, 1)});
            }).find("only along axis 1"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
