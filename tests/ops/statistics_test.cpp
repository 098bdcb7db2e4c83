// Probe statistics against plain loops, and non-finite values that must not be hidden.
#include "norma/ops/statistics.h"

#include <limits>

#include "check.h"

namespace norma {
namespace {

Statistics read(CpuSession& session, std::int64_t elements) {
  return read_statistics(elements, [&](std::size_t index) { return session.tensor<double>("s")[index]; });
}

TEST(Statistics, AgreesWithPlainLoops) {
  for (const std::int64_t n : {1, 33, 100000}) {
    Graph g;
    g.output("s", statistics(g.input("x", {{n}, DType::f32})));
    CpuSession session(test::plain_plan(g));
    test::randomise<float>(session, "x", 5, 0.5, 2);
    session.run();
    double sum = 0, squares = 0, top = 0;
    for (const float v : session.tensor<float>("x")) {
      sum += v;
      squares += static_cast<double>(v) * v;
      top = std::max(top, std::abs(static_cast<double>(v)));
    }
    const Statistics s = read(session, n);
    const double count = static_cast<double>(n);
    EXPECT_NEAR(s.mean, sum / count, 1e-5);
    EXPECT_NEAR(s.rms, std::sqrt(squares / count), 1e-5);
    EXPECT_EQ(s.max_abs, top);
    EXPECT_EQ(s.non_finite, 0);
  }
}

TEST(Statistics, CountsWhatIsNotFinite) {
  Graph g;
  g.output("s", statistics(g.input("x", {{70}, DType::f32})));
  CpuSession session(test::plain_plan(g));
  test::randomise_all(session);
  session.tensor<float>("x")[2] = std::numeric_limits<float>::infinity();
  session.tensor<float>("x")[69] = std::numeric_limits<float>::quiet_NaN();
  session.run();
  const Statistics s = read(session, 70);
  EXPECT_EQ(s.non_finite, 2);
  EXPECT_FALSE(std::isfinite(s.rms));
  EXPECT_FALSE(std::isfinite(s.max_abs));
}

}  // namespace
}  // namespace norma
