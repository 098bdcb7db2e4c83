// The order of a step: updates wait for the last reader of the old value, and what nobody reads does not run.
#include "check.h"
#include "graph/test_ops.h"

namespace norma {
namespace {

using test::accumulate;
using test::error_of;

const Type kFour{{4}, DType::f32};

TEST(Schedule, DropsWhatNobodyReads) {
  Graph g;
  const Wire x = g.input("x", kFour);
  exp(tanh(x));  // dead
  g.output("y", square(x));
  const auto plan = test::test_plan(g);
  ASSERT_EQ(plan->steps().size(), 1u);
  EXPECT_EQ(plan->nodes()[0].op->name(), "square");
}

TEST(Schedule, KeepsUpdatesThatNobodyReads) {
  Graph g;
  const Wire w = g.parameter("w", kFour), x = g.input("x", kFour);
  accumulate(w, x);
  const auto plan = test::test_plan(g);
  EXPECT_EQ(plan->steps().size(), 1u);
}

// The old value is read by a node that was traced after the update.
TEST(Schedule, UpdatesComeAfterTheLastReadOfTheOldValue) {
  Graph g;
  const Wire w = g.parameter("w", kFour), x = g.input("x", kFour);
  const Wire updated = accumulate(w, x);
  g.output("old", w * 10.0);
  g.output("new", updated * 10.0);
  CpuSession session(test::test_plan(g));
  session.write<float>("w", std::vector<float>{1, 2, 3, 4});
  session.write<float>("x", std::vector<float>{1, 1, 1, 1});
  for (int step = 0; step < 3; ++step) {
    session.run();
    for (std::size_t i = 0; i < 4; ++i) {
      const float before = static_cast<float>(i + 1) + static_cast<float>(step);
      EXPECT_EQ(session.tensor<float>("old")[i], 10 * before);
      EXPECT_EQ(session.tensor<float>("new")[i], 10 * (before + 1));
      EXPECT_EQ(session.tensor<float>("w")[i], before + 1);
    }
  }
}

TEST(Schedule, UpdatesComeAsEarlyAsTheyMay) {
  Graph g;
  const Wire w = g.parameter("w", kFour), x = g.input("x", kFour);
  Wire y = x * w;
  const Wire change = y;
  for (int i = 0; i < 5; ++i) y = tanh(y);
  g.output("y", y);
  accumulate(w, change);
  const auto plan = test::test_plan(g);
  EXPECT_EQ(plan->nodes()[1].op->name(), "accumulate");
}

TEST(Schedule, CyclicUpdatesNameTheirParametersAndNoOthers) {
  Graph g;
  const Wire a = g.parameter("a", kFour), b = g.parameter("b", kFour), c = g.parameter("c", kFour);
  const Wire new_a = accumulate(a, b);  // needs the old b
  accumulate(b, a);                     // needs the old a
  accumulate(c, new_a);                 // only waits for the cycle
  const std::string message = error_of([&] { test::test_plan(g); });
  EXPECT_EQ(message, "the updates of 'a', 'b' form a cycle: each needs the old value that another one overwrites");
}

TEST(Schedule, TwoUpdatesOfOneParameter) {
  Graph g;
  const Wire w = g.parameter("layers.0.w", kFour), x = g.input("x", kFour);
  accumulate(w, x);
  accumulate(w, x);
  EXPECT_EQ(error_of([&] { test::test_plan(g); }), "parameter 'layers.0.w' is updated twice in one step");
}

TEST(Schedule, OnlyParametersAndStatesAreUpdated) {
  Graph g;
  const Wire x = g.input("x", kFour), y = g.input("y", kFour);
  accumulate(x, y);
  EXPECT_EQ(error_of([&] { test::test_plan(g); }),
            "accumulate updates 'x', which is input; only parameters and states can be updated");
}

}  // namespace
}  // namespace norma
