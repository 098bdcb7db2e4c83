// The memory of a plan: results written over inputs that die, views, updates, and what the plan says about itself.
#include "norma/graph/plan.h"

#include <algorithm>
#include <limits>

#include "check.h"
#include "graph/test_ops.h"
#include "norma/graph/sum.h"

namespace norma {
namespace {

const Type kForty{{40}, DType::f32};

// A random graph of elementwise ops over two inputs; every wire may be read again later.
Wires random_wires(Graph& g, std::uint64_t seed) {
  const RandomStream random(seed, "graph");
  std::uint64_t draw = 0;
  Wires wires = {g.input("x", kForty), g.input("y", kForty)};
  for (int i = 0; i < 40; ++i) {
    // Mostly recent wires, so that many die early and their memory is reused.
    const auto pick = [&] {
      const std::uint64_t back = 1 + random.below(draw++, std::min<std::uint64_t>(wires.size(), 6));
      return wires[wires.size() - back];
    };
    const Wire a = pick(), b = pick(), c = pick();
    switch (random.below(draw++, 6)) {
      case 0: wires.push_back(tanh(a)); break;
      case 1: wires.push_back(-a); break;
      case 2: wires.push_back(a * b * 0.5); break;
      case 3: wires.push_back(a - b); break;
      case 4: wires.push_back(sigmoid(a + b)); break;
      default: {
        const Wire terms[] = {tanh(a), b * 0.25, tanh(c)};
        wires.push_back(sum(terms));
      }
    }
  }
  return wires;
}

// With every wire an output nothing can be overwritten; with only the last few, almost everything is.
TEST(Plan, OverwritingInputsChangesNothing) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Graph kept, reused;
    const Wires all = random_wires(kept, seed);
    const Wires same = random_wires(reused, seed);
    for (std::size_t i = 2; i < all.size(); ++i) kept.output("w" + std::to_string(i), all[i]);
    for (std::size_t i = same.size() - 2; i < same.size(); ++i) reused.output("w" + std::to_string(i), same[i]);
    CpuSession first(test::test_plan(kept)), second(test::test_plan(reused));
    EXPECT_LT(second.plan().transient_bytes(), first.plan().transient_bytes() / 2);
    test::randomise_all(first);
    test::randomise_all(second);
    first.run();
    second.run();
    second.run();  // the second step finds the memory as the first left it
    for (std::size_t i = same.size() - 2; i < same.size(); ++i) {
      const std::string name = "w" + std::to_string(i);
      const std::span<float> a = first.tensor<float>(name), b = second.tensor<float>(name);
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << "seed " << seed << " " << name;
    }
  }
}

TEST(Plan, AChainOfElementwiseOpsNeedsOneBuffer) {
  Graph g;
  Wire x = g.input("x", kForty);
  for (int i = 0; i < 10; ++i) x = tanh(x);
  g.output("y", x);
  EXPECT_EQ(test::test_plan(g)->transient_bytes(), align_up(kForty.bytes()));
}

TEST(Plan, InputsAndParametersAreNeverOverwritten) {
  Graph g;
  const Wire x = g.input("x", kForty), w = g.parameter("w", kForty);
  g.output("y", tanh(x) * w);
  CpuSession session(test::test_plan(g));
  test::randomise_all(session);
  const std::vector<float> x_before(session.tensor<float>("x").begin(), session.tensor<float>("x").end());
  session.run();
  EXPECT_TRUE(std::equal(x_before.begin(), x_before.end(), session.tensor<float>("x").begin()));
}

// Both outputs could take the place of the input; nobody reads the first one.
TEST(Plan, TwoOutputsNeverShareAnOverwrittenInput) {
  Graph g;
  const Wire in[] = {tanh(g.input("x", kForty))};
  const Wires both = g.apply(std::make_shared<test::TwoOutputs>(), in);
  g.output("second", both[1]);
  const auto plan = test::test_plan(g);
  EXPECT_NE(plan->offset_of(both[0].id()), plan->offset_of(both[1].id()));
  CpuSession session(plan);
  session.run();
  for (const float value : session.tensor<float>("second")) EXPECT_EQ(value, 2);
}

TEST(Plan, UpdatesHappenInPlace) {
  Graph g;
  const Wire w = g.parameter("w", kForty), x = g.input("x", kForty);
  const Wire updated = test::accumulate(w, x);
  g.output("w'", updated);
  const auto plan = test::test_plan(g);
  EXPECT_EQ(plan->offset_of(updated.id()), plan->offset_of(w.id()));
  EXPECT_EQ(plan->transient_bytes(), 0);
}

TEST(Plan, SlotsKnowTheirRoleAndAreSorted) {
  Graph g;
  const Wire b = g.parameter("b", kForty), a = g.parameter("a", kForty);
  const Wire m = g.state("m", kForty), x = g.input("x", kForty);
  g.output("y", a * x + b * m);
  const auto plan = test::test_plan(g);
  EXPECT_EQ(plan->slot_names(Role::parameter), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(plan->slot_names(Role::state), (std::vector<std::string>{"m"}));
  EXPECT_EQ(plan->slot_names(Role::input), (std::vector<std::string>{"x"}));
  EXPECT_EQ(plan->slot_names(Role::computed), (std::vector<std::string>{"y"}));
  EXPECT_EQ(plan->persistent_bytes(), 4 * align_up(kForty.bytes()));
}

TEST(Plan, MemoryReportNamesTheLargestTensors) {
  Graph g;
  const Wire w = g.parameter("large.weight", {{100, 40}, DType::f32}), x = g.input("x", kForty);
  g.output("y", sum_last(w * x));
  const std::string report = test::test_plan(g)->memory_report();
  EXPECT_NE(report.find("parameter    15.6 KiB\n"), std::string::npos) << report;
  EXPECT_NE(report.find("  large.weight f32[100, 40] 15.6 KiB\n"), std::string::npos) << report;
}

TEST(Plan, CostCountsEveryNode) {
  Graph g;
  g.output("y", tanh(g.input("x", kForty)) * 2.0);
  const Cost cost = test::test_plan(g)->cost();
  EXPECT_EQ(cost.flops, 80);
  EXPECT_EQ(cost.bytes, 4 * (40 + 40 + 40 + 40 + 1));
}

}  // namespace
}  // namespace norma
