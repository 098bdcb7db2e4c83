// Rotary positions: against the formula, both pairings, lengths and inner products kept.
#include "norma/ops/rope.h"

#include "check.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

TEST(Rope, FollowsTheFormula) {
  for (const RopePairs pairs : {RopePairs::interleaved, RopePairs::half_split}) {
    constexpr std::size_t kTime = 5, kHeads = 3, kWidth = 38, kHalf = kWidth / 2;
    Graph g;
    const Wire x = g.input("x", {{2, kTime, kHeads, kWidth}, DType::f32});
    g.output("y", rope(x, {.theta = 100, .pairs = pairs}));
    CpuSession session(test::plain_plan(g));
    test::randomise_all(session);
    session.run();
    const auto in = session.tensor<float>("x"), out = session.tensor<float>("y");
    for (std::size_t row = 0; row < 2 * kTime * kHeads; ++row) {
      for (std::size_t i = 0; i < kHalf; ++i) {
        const std::size_t first = row * kWidth + (pairs == RopePairs::interleaved ? 2 * i : i);
        const std::size_t second = pairs == RopePairs::interleaved ? first + 1 : first + kHalf;
        const double angle = static_cast<double>(row / kHeads % kTime) *
                             std::pow(100.0, -2.0 * static_cast<double>(i) / static_cast<double>(kWidth));
        const double a = in[first], b = in[second];
        EXPECT_NEAR(out[first], a * std::cos(angle) - b * std::sin(angle), 1e-6);
        EXPECT_NEAR(out[second], a * std::sin(angle) + b * std::cos(angle), 1e-6);
      }
    }
  }
}

TEST(Rope, Gradients) {
  for (const RopePairs pairs : {RopePairs::interleaved, RopePairs::half_split}) {
    check_gradients(
        [&](Graph& g) {
          const Wire y = rope(g.input("x", {{2, 3, 12}, DType::f64}), {.head_width = 6, .pairs = pairs});
          return sum_all(square(y) * g.input("weight", y.type()));
        },
        {"x"});
  }
}

TEST(Rope, ShapesAgreeAndTheRestOfAPackedRowIsCopied) {
  Graph g;
  const Wire x = g.input("x", {{2, 7, 24}, DType::f32});
  const RopeOptions options{.head_width = 8};
  g.output("three", rope(x, options));
  g.output("four", reshape(rope(reshape(x, {2, 7, 3, 8}), {}), x.shape()));
  g.output("two", reshape(rope(reshape(x, {14, 24}), {.head_width = 8, .time = 7}), x.shape()));
  g.output("packed", rope(x, {.head_width = 8, .rotated = 16}));
  CpuSession session(test::plain_plan(g));
  test::randomise_all(session);
  session.run();
  const auto three = session.tensor<float>("three"), packed = session.tensor<float>("packed");
  for (std::size_t i = 0; i < three.size(); ++i) {
    EXPECT_EQ(session.tensor<float>("four")[i], three[i]);
    EXPECT_EQ(session.tensor<float>("two")[i], three[i]);
    EXPECT_EQ(packed[i], i % 24 < 16 ? three[i] : session.tensor<float>("x")[i]);
  }
}

TEST(Rope, ErrorsSayWhatWasGiven) {
  Graph g;
  const Wire x = g.input("x", {{2, 7, 21}, DType::f32});
  const auto message = [&](const RopeOptions& options) { return error_of([&] { rope(x, options); }); };
  EXPECT_NE(message({.head_width = 7}).find("even and at least 2 but is 7"), std::string::npos);
  EXPECT_NE(message({.head_width = 8}).find("21 rotated channels of 21 are not a number of heads of width 8"),
            std::string::npos);
  EXPECT_NE(message({.head_width = 8, .time = 4, .rotated = 16}).find("14 rows are not a multiple of 4 positions"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
