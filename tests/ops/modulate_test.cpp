// Scale and shift by a condition, and features of timesteps.
#include "norma/ops/modulate.h"

#include "check.h"
#include "norma/graph/differentiate.h"
#include "norma/ops/time_features.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

struct Sizes {
  std::int64_t batch, positions, width;
};

TEST(Modulate, Gradients) {
  for (const Sizes& s : {Sizes{3, 5, 7}, {1, 1, 1}, {2, 31, 33}}) {
    const auto out = [&](Graph& g) {
      return modulate(g.input("x", {{s.batch, s.positions, s.width}, DType::f64}),
                      g.input("scale", {{s.batch, 1, s.width}, DType::f64}),
                      g.input("shift", {{s.batch, s.width}, DType::f64}));
    };
    check_gradients([&](Graph& g) { return sum_all(square(out(g))); }, {"x", "scale", "shift"});
    check_gradients(
        [&](Graph& g) {
          const Wire loss = sum_all(square(square(out(g))));
          return sum_all(square(differentiate(loss, Wires{g.find("x"), g.find("scale")})[0]));
        },
        {"x", "scale", "shift"}, {.step = 1e-5, .tolerance = 1e-4});
  }
}

TEST(Modulate, KernelsAgreeWithTheReference) {
  for (const Sizes& s : {Sizes{3, 5, 7}, {1, 64, 31}, {4, 1, 33}}) {
    Graph g;
    const Type type{{s.batch, s.positions, s.width}, DType::f32};
    const Wire x = g.input("x", type), scale = g.input("scale", {{s.batch, s.width}, DType::f32}),
               shift = g.input("shift", {{s.batch, s.width}, DType::f32}), dy = g.input("dy", type);
    const Wire y = modulate(x, scale, shift);
    const Wires d = differentiate(sum_all(y * dy), Wires{x, scale, shift});
    const Wires parts = {x, scale, shift};
    const Wire plain = Modulate().reference(parts)[0];
    const Wires expected = differentiate(sum_all(plain * dy), Wires{x, scale, shift});
    g.output("y", y);
    g.output("plain", plain * 1.0);
    for (std::size_t i = 0; i < 3; ++i) {
      g.output("d" + std::to_string(i), d[i]);
      g.output("e" + std::to_string(i), expected[i]);
    }
    CpuSession session(test::plain_plan(g));
    test::randomise_all(session, 1);
    session.run();
    const auto compare = [&](const std::string& a, const std::string& b) {
      const auto left = session.tensor<float>(a), right = session.tensor<float>(b);
      ASSERT_EQ(left.size(), right.size());
      for (std::size_t i = 0; i < left.size(); ++i) EXPECT_NEAR(left[i], right[i], 2e-5) << a << " " << i;
    };
    compare("y", "plain");
    for (const char* which : {"0", "1", "2"}) compare(std::string("d") + which, std::string("e") + which);
  }
}

TEST(Modulate, ShapesThatDoNotFitAreNamed) {
  Graph g;
  const Wire x = g.input("x", {{2, 3, 4}, DType::f32}), good = g.input("good", {{2, 4}, DType::f32}),
             bad = g.input("bad", {{2, 3, 4}, DType::f32});
  const std::string error = error_of([&] { modulate(x, bad, good); });
  EXPECT_NE(error.find("scale must be one number for each channel of a sample, [2, 4], but is"), std::string::npos)
      << error;
}

// cos and sin of t longest^(-i / half), in double, and zero behind them where the width is odd.
TEST(TimeFeatures, AreCosinesThenSines) {
  for (const std::int64_t width : {2, 7, 16}) {
    Graph g;
    g.output("y", time_features(g.input("t", {{3}, DType::f32}), width, "rates"));
    CpuSession session(test::plain_plan(g));
    session.write<float>("t", std::vector<float>{0, 1, 999}, 0);
    session.run();
    const auto y = session.tensor<float>("y");
    const std::int64_t half = width / 2;
    for (std::int64_t row = 0; row < 3; ++row) {
      const double t = row == 2 ? 999 : static_cast<double>(row);
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle = t * std::exp(-std::log(1e4) * static_cast<double>(i) / static_cast<double>(half));
        EXPECT_NEAR(y[static_cast<std::size_t>(row * width + i)], std::cos(angle), 1e-4);
        EXPECT_NEAR(y[static_cast<std::size_t>(row * width + half + i)], std::sin(angle), 1e-4);
      }
      const std::size_t last = static_cast<std::size_t>(row * width + width - 1);
      EXPECT_TRUE(width % 2 == 0 || y[last] == 0);
    }
  }
}

TEST(TimeFeatures, HaveTheirGradient) {
  check_gradients(
      [](Graph& g) {
        const Wire y = time_features(g.input("t", {{3}, DType::f64}), 5, "rates");
        return sum_all(square(y + 0.3));
      },
      {"t"});
}

}  // namespace
}  // namespace norma
