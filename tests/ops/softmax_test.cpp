// Softmax: rows that sum to one, masks, derivatives.
#include "norma/ops/softmax.h"

#include <limits>
#include <numeric>

#include "check.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

TEST(Softmax, GradientsUnderEveryMask) {
  for (const Mask mask : {Mask::full, Mask::causal}) {
    for (const bool with_lengths : {false, true}) {
      check_gradients(
          [&](Graph& g) {
            const Wire x = g.input("x", {{2, 3, 7, 7}, DType::f64});
            const Wire lengths = with_lengths ? g.input("lengths", {{2}, DType::i32}) : Wire();
            const Wire y = softmax(x, mask, lengths);
            return sum_all(y * g.input("weight", y.type()));
          },
          {"x"}, {.prepare = [&](CpuSession& session) {
            if (with_lengths) session.write<std::int32_t>("lengths", std::vector<std::int32_t>{7, 4});
          }});
    }
  }
}

TEST(Softmax, SecondDerivatives) {
  check_gradients(
      [](Graph& g) {
        const Wire x = g.input("x", {{3, 5, 5}, DType::f64});
        const Wire wrt[] = {x};
        const Wire loss = sum_all(square(softmax(x, Mask::causal)) * g.input("weight", x.type()));
        return sum_all(square(differentiate(loss, wrt)[0]));
      },
      {"x"}, {.tolerance = 1e-6});
}

TEST(Softmax, HiddenEntriesAreZeroAndRowsSumToOne) {
  Graph g;
  const Wire x = g.input("x", {{2, 5, 5}, DType::f32});
  g.output("y", softmax(x, Mask::causal, g.input("lengths", {{2}, DType::i32})));
  CpuSession session(test::plain_plan(g));
  test::randomise<float>(session, "x");
  session.write<std::int32_t>("lengths", std::vector<std::int32_t>{3, 0});
  session.run();
  const auto y = session.tensor<float>("y");
  for (std::size_t i = 0; i < 5; ++i) {
    const auto row = y.subspan(i * 5, 5);
    EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0), 1.0, 1e-6);
    for (std::size_t j = std::min<std::size_t>(i + 1, 3); j < 5; ++j) EXPECT_EQ(row[j], 0);
  }
  for (std::size_t i = 25; i < 50; ++i) EXPECT_EQ(y[i], 0);
}

TEST(Softmax, LargeScoresDoNotOverflowAndNaNStays) {
  Graph g;
  g.output("y", softmax(g.input("x", {{3, 19}, DType::f32})));
  CpuSession session(test::plain_plan(g));
  const auto x = session.tensor<float>("x");
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1e4f + static_cast<float>(i % 19);
  x[19 + 18] = std::numeric_limits<float>::quiet_NaN();
  session.run();
  const auto y = session.tensor<float>("y");
  for (std::size_t i = 0; i < 19; ++i) {
    EXPECT_TRUE(std::isfinite(y[i]));
    EXPECT_TRUE(std::isnan(y[19 + i]));
    EXPECT_EQ(y[i], y[38 + i]);
  }
}

TEST(Softmax, ErrorsSayWhatWasGiven) {
  Graph g;
  const Wire x = g.input("x", {{4, 6}, DType::f32});
  EXPECT_NE(error_of([&] { softmax(x, Mask::causal); }).find("as many keys as queries but was given [4, 6]"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              softmax(x, Mask::full, g.input("n", {{3}, DType::i32}));
            }).find("i32[4] but is i32[3]"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
