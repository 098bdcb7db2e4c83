// Steps on several lanes: in every order that lanes and waits allow, a plan computes the same bits.
#include "graph/lanes.h"

#include <random>

#include "check.h"
#include "norma/core/arena.h"
#include "norma/ops/matmul.h"

namespace norma {
namespace {

using Steps = std::vector<int>;

TEST(Lanes, OneLaneWaitsForNothing) {
  Lanes lanes;
  EXPECT_EQ(lanes.add(0, Steps{}, Steps{1}), Steps{});
  EXPECT_EQ(lanes.add(0, Steps{1}, Steps{2}), Steps{});
  EXPECT_EQ(lanes.joins(), (Steps{0, 1}));
}

TEST(Lanes, ASideLaneFollowsTheMainOneAndIsWaitedForWhenItsResultIsRead) {
  Lanes lanes;
  lanes.add(0, Steps{}, Steps{1});
  EXPECT_EQ(lanes.add(1, Steps{1}, Steps{2}), Steps{0});
  EXPECT_EQ(lanes.add(1, Steps{1}, Steps{3}), Steps{}) << "its lane has waited already";
  EXPECT_EQ(lanes.add(0, Steps{1}, Steps{4}), Steps{}) << "both read";
  EXPECT_EQ(lanes.add(0, Steps{2}, Steps{5}), Steps{1});
  EXPECT_EQ(lanes.add(0, Steps{5}, Steps{6}), Steps{});
  EXPECT_EQ(lanes.joins(), (Steps{0, 4, 6, 3, 4, 5})) << "nobody waits for step 2 before the end";
}

TEST(Lanes, TheMainLaneWaitsBeforeItWritesWhatASideLaneReads) {
  Lanes lanes;
  lanes.add(0, Steps{}, Steps{1});
  lanes.add(1, Steps{1}, Steps{2});
  EXPECT_EQ(lanes.add(0, Steps{}, Steps{1}), Steps{1});
}

TEST(Lanes, TheMainLaneDoesNotRunFarAhead) {
  Lanes lanes(3);
  lanes.add(0, {}, Steps{1});
  lanes.add(1, Steps{1}, Steps{2});
  EXPECT_EQ(lanes.add(0, {}, Steps{3}), Steps{});
  EXPECT_EQ(lanes.add(0, {}, Steps{4}), Steps{});
  EXPECT_EQ(lanes.add(0, {}, Steps{5}), Steps{1}) << "three steps later";
  EXPECT_EQ(lanes.add(0, {}, Steps{6}), Steps{}) << "it has waited";
  EXPECT_EQ(lanes.joins(), (Steps{0, 4, 2, 3, 4, 5}));
}

TEST(Lanes, SideLanesWaitForEachOther) {
  Lanes lanes;
  lanes.add(1, Steps{}, Steps{1});
  EXPECT_EQ(lanes.add(2, Steps{1}, Steps{2}), Steps{0});
}

// The CPU with sums over rows (weight gradients) and additions to parameters on lanes of their own.
class Aside final : public Backend {
 public:
  std::string_view name() const override { return "aside"; }
  bool has(const Op& op, Types in, Types out) const override { return cpu_backend().has(op, in, out); }
  std::unique_ptr<const Kernel> make(const Op& op, Types in, Types out) const override {
    const auto* matmul = dynamic_cast<const MatMul*>(&op);
    const bool weight_gradient = matmul != nullptr && matmul->product() == Product::reduce_rows;
    const std::unique_ptr<const Kernel> made = cpu_backend().make(op, in, out);
    const auto& program = dynamic_cast<const CpuProgram&>(*made);
    return std::make_unique<CpuProgram>(CpuKernel{program.phases, program.needs.scratch_bytes, program.worker_bytes},
                                        weight_gradient         ? 1
                                        : op.name() == "square" ? 2
                                                                : 0);
  }
  std::span<const Rewrite> rewrites() const override { return cpu_backend().rewrites(); }
  std::int64_t alignment() const override { return cpu_backend().alignment(); }
};

// A chain of products and its weight gradients.
void build_chain(Graph& g) {
  Wire x = g.input("x", {{24, 16}, DType::f32});
  Wires weights;
  for (int layer = 0; layer < 6; ++layer) {
    weights.push_back(g.parameter("w" + std::to_string(layer), {{16, 16}, DType::f32}));
    x = x + tanh(matmul_rows(x, weights.back()));
  }
  const Wires gradients = differentiate(mean_all(square(x)), weights);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    g.output("d" + std::to_string(i), sum_all(square(gradients[i])));
  }
}

// Runs the steps in an order that respects lanes and waits and nothing else.
class Shuffled {
 public:
  explicit Shuffled(const Plan& plan)
      : plan_(plan), memory_(plan.member_bytes()), worker_(worker_bytes(plan) + kArenaAlignment) {
    for (const Value& value : plan.values()) {
      if (value.role == Role::constant)
        std::copy(value.data->begin(), value.data->end(), memory_.data() + plan.slot(value.name).offset);
    }
  }

  float* tensor(const std::string& name) { return reinterpret_cast<float*>(memory_.data() + plan_.slot(name).offset); }

  void run(std::mt19937& random) {
    const auto count = static_cast<int>(plan_.steps().size());
    std::vector<bool> done(plan_.steps().size(), false);
    for (int left = count; left > 0; --left) {
      std::vector<int> ready;
      std::set<int> blocked;  // lanes whose earliest step is not done
      for (int index = 0; index < count; ++index) {
        const Step& step = plan_.steps()[static_cast<std::size_t>(index)];
        if (done[static_cast<std::size_t>(index)] || !blocked.insert(step.kernel->lane).second) continue;
        const auto& waits = step.waits_for;
        if (std::all_of(waits.begin(), waits.end(), [&](int w) { return done[static_cast<std::size_t>(w)]; }))
          ready.push_back(index);
      }
      ASSERT_FALSE(ready.empty());
      const int next = ready[random() % ready.size()];
      run_step(plan_.steps()[static_cast<std::size_t>(next)]);
      done[static_cast<std::size_t>(next)] = true;
    }
  }

 private:
  void run_step(const Step& step) {
    const Call call{.base = memory_.data(),
                    .offsets = step.offsets.data(),
                    .inputs = step.inputs,
                    .scratch = memory_.data() + step.scratch,
                    .worker_scratch = worker_.data()};
    for (const Phase& phase : dynamic_cast<const CpuProgram&>(*step.kernel).phases) {
      for (std::int64_t tile = 0; tile < phase.tiles; ++tile) phase.run(call, tile);
    }
  }

  const Plan& plan_;
  Arena memory_, worker_;
};

TEST(Lanes, EveryOrderThatIsAllowedGivesTheSameBits) {
  Graph straight, aside;
  build_chain(straight);
  build_chain(aside);
  CpuSession expected(test::plain_plan(straight), {.threads = 1});
  test::randomise_all(expected);
  expected.run();
  const auto plan = test::plain_plan(aside, {}, Aside());
  std::set<int> lanes;
  for (const Step& step : plan->steps()) lanes.insert(step.kernel->lane);
  ASSERT_EQ(lanes, (std::set<int>{0, 1, 2}));
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Shuffled shuffled(*plan);
    for (const Role role : {Role::parameter, Role::input}) {
      for (const std::string& name : expected.plan().slot_names(role)) {
        const auto values = expected.tensor<float>(name);
        std::copy(values.begin(), values.end(), shuffled.tensor(name));
      }
    }
    shuffled.run(random);
    for (int i = 0; i < 6; ++i) {
      const std::string name = "d" + std::to_string(i);
      ASSERT_EQ(*shuffled.tensor(name), expected.tensor<float>(name)[0]) << name << " in round " << round;
    }
  }
}

TEST(Lanes, WhatASideLaneTouchesLivesUntilTheLanesJoin) {
  Graph straight, aside;
  build_chain(straight);
  build_chain(aside);
  EXPECT_GT(test::plain_plan(aside, {}, Aside())->peak_live_bytes(), test::plain_plan(straight)->peak_live_bytes());
}

}  // namespace
}  // namespace norma
