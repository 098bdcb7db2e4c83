// Probe statistics against plain loops, and non-finite values that must not be hidden.
#include "norma/ops/statistics.h"

#include <limits>

#include "check.h"

namespace norma {
namespace {

TEST(Statistics, AgreesWithPlainLoops) {
  for (const std::int64_t n : {1, 33, 100000}) {
    Graph g;
    g.output("s", statistics(g.input("x", {{n}, DType::f32})));
    Session session(compile(g));
    test::randomise<float>(session, "x", 5, 0.5, 2);
    session.run();
    double sum = 0, squares = 0, top = 0;
    for (const float v : session.tensor<float>("x")) {
      sum += v;
      squares += static_cast<double>(v) * v;
      top = std::max(top, std::abs(static_cast<double>(v)));
    }
    const std::span<float> s = session.tensor<float>("s");
    const double count = static_cast<double>(n);
    EXPECT_NEAR(s[Statistics::mean], sum / count, 1e-5);
    EXPECT_NEAR(s[Statistics::rms], std::sqrt(squares / count), 1e-5);
    EXPECT_EQ(s[Statistics::max_abs], static_cast<float>(top));
    EXPECT_EQ(s[Statistics::non_finite], 0);
  }
}

TEST(Statistics, CountsWhatIsNotFinite) {
  Graph g;
  g.output("s", statistics(g.input("x", {{70}, DType::f32})));
  Session session(compile(g));
  test::randomise_all(session);
  session.tensor<float>("x")[2] = std::numeric_limits<float>::infinity();
  session.tensor<float>("x")[69] = std::numeric_limits<float>::quiet_NaN();
  session.run();
  const std::span<float> s = session.tensor<float>("s");
  EXPECT_EQ(s[Statistics::non_finite], 2);
  EXPECT_FALSE(std::isfinite(s[Statistics::rms]));
  EXPECT_FALSE(std::isfinite(s[Statistics::max_abs]));
}

}  // namespace
}  // namespace norma
