// Ops without a kernel become their references, or are named.
#include <functional>

#include "check.h"
#include "graph/test_ops.h"

namespace norma {
namespace {

// The CPU without some ops.
class Without final : public Backend {
 public:
  explicit Without(std::function<bool(const Op&)> missing) : missing_(std::move(missing)) {}

  std::string_view name() const override { return "small"; }
  bool has(const Op& op, Types in, Types out) const override { return !missing_(op) && cpu().has(op, in, out); }
  std::unique_ptr<const Kernel> make(const Op& op, Types in, Types out) const override {
    EXPECT_FALSE(missing_(op)) << op.name();
    return cpu().make(op, in, out);
  }
  std::span<const Rewrite> rewrites() const override { return cpu().rewrites(); }
  std::int64_t alignment() const override { return cpu().alignment(); }

 private:
  static const Backend& cpu() { return test::test_backend(); }
  std::function<bool(const Op&)> missing_;
};

bool is_gate(const Op& op) { return op.name() == "gate"; }

// One whose reference is its input, and one whose reference has no kernel either.
class Same final : public Op {
 public:
  std::string_view name() const override { return "same"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {in[0]}; }
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override { return {in[0]}; }
};
class Twice final : public Op {
 public:
  std::string_view name() const override { return "twice"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {in[0], in[0]}; }
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override {
    const Wire once = test::gate(in[0], in[1]);
    return {once, test::gate(once, in[1])};
  }
};

TEST(Lower, AnOpWithoutAKernelBecomesItsReference) {
  const auto build = [](Graph& g) {
    const Wire a = g.parameter("a", {{5}, DType::f32}), b = g.parameter("b", {{5}, DType::f32});
    const auto scope = g.scope("layer");
    g.output("y", square(test::gate(a, b)));
  };
  Graph direct, lowered;
  build(direct);
  build(lowered);
  CpuSession expected(test::test_plan(direct)), session(test::plain_plan(lowered, {}, Without(is_gate)));
  EXPECT_EQ(session.plan().steps().size(), expected.plan().steps().size() + 1);
  for (const Node& node : session.plan().nodes())
    EXPECT_EQ(node.scope.str(), "layer") << "errors name where it was written";
  for (CpuSession* each : {&expected, &session}) {
    test::randomise_all(*each);
    each->run();
  }
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NE(session.tensor<float>("y")[i], 0);
    EXPECT_NEAR(session.tensor<float>("y")[i], expected.tensor<float>("y")[i], 1e-6);
  }
}

TEST(Lower, ReferencesMayPassInputsOnAndUseOtherReferences) {
  Graph g;
  const Wire a = g.input("a", {{5}, DType::f32}), b = g.input("b", {{5}, DType::f32});
  const Wire same = g.apply(std::make_shared<Same>(), Wires{a})[0];
  const Wires out = g.apply(std::make_shared<Twice>(), Wires{same, b});
  g.output("same", g.apply(std::make_shared<Same>(), Wires{out[0]})[0]);
  g.output("twice", out[1]);
  CpuSession session(test::plain_plan(g, {}, Without(is_gate)));
  test::randomise_all(session);
  session.run();
  for (std::size_t i = 0; i < 5; ++i) {
    const double x = session.tensor<float>("a")[i], t = std::tanh(session.tensor<float>("b")[i]);
    EXPECT_NEAR(session.tensor<float>("same")[i], x * t, 1e-6);
    EXPECT_NEAR(session.tensor<float>("twice")[i], x * t * t, 1e-6);
  }
}

TEST(Lower, RecomputesWhatStandsForAnOp) {
  const auto bytes = [](int every) {
    Graph g;
    const Wire w = g.parameter("w", {{1, 64}, DType::f32});
    Wire x = g.input("x", {{32, 64}, DType::f32});
    for (int layer = 0; layer < 6; ++layer) {
      const auto segment = g.segment();
      x = x + test::gate(exp(x), broadcast_to(w, x.shape()));
    }
    const Wire wrt[] = {w};
    g.output("d", differentiate(sum_all(x), wrt)[0]);
    return test::plain_plan(g, {.recompute_every = every}, Without(is_gate))->transient_bytes();
  };
  EXPECT_LT(bytes(1), bytes(0));
}

TEST(Lower, NamesAnOpThatHasNeitherKernelNorReference) {
  Graph g;
  const auto scope = g.scope("layers.2");
  const Wire x = g.input("x", {{5}, DType::f32});
  g.output("y", tanh(x));
  const Without none([](const Op& op) { return op.name() == "tanh"; });
  EXPECT_EQ(test::error_of([&] { compile(g, none); }),
            "in layers.2: tanh(layers.2.x f32[5]): small has no kernel for it, and it is no composition of other ops");
}

TEST(Lower, NamesADTypeWithoutAKernel) {
  Graph g;
  const Wire p = g.parameter("p", {{5}, DType::f64});
  test::accumulate(p, g.input("x", {{5}, DType::f64}));
  EXPECT_EQ(test::error_of([&] { compile(g, test::test_backend()); }),
            "accumulate(p f64[5], x f64[5]): cpu has no kernel for it, and it is no composition of other ops");
}

}  // namespace
}  // namespace norma
