// Fused = unfused, and it fired.
#include "norma/norms/fusions.h"

#include "norma/graph/sum.h"
#include "norma/norms/channel.h"
#include "norma/ops/activation.h"
#include "norms/conformance.h"

namespace norma {
namespace {

using namespace test;

using Build = std::function<Wire(Graph&, const NormInfo&)>;  // the stream after a few sublayers

constexpr std::int64_t kRows = 37, kWidth = 45;

Wire branch(Graph& g, Wire x, const std::string& name) {
  return tanh(x * g.parameter(name + ".weight", {{kWidth}, DType::f64}));
}

Wire normed(Graph& g, const NormInfo& info, Wire x, const std::string& name) {
  const auto scope = g.scope(name);
  return apply_norm(info, x, declare_norm(g, info, kWidth, DType::f64));
}

Wire pre_norm(Graph& g, const NormInfo& info) {
  Wire x = g.input("x", {{kRows, kWidth}, DType::f64});
  for (const char* layer : {"a", "b", "c"}) x = x + branch(g, normed(g, info, x, layer), layer);
  return normed(g, info, x, "final");
}

Wire post_norm(Graph& g, const NormInfo& info) {
  Wire x = g.input("x", {{kRows, kWidth}, DType::f64});
  for (const char* layer : {"a", "b", "c"}) x = normed(g, info, x + branch(g, x, layer), layer);
  return x;
}

// attention and feed-forward side by side: three terms in each sum
Wire parallel(Graph& g, const NormInfo& info) {
  Wire x = g.input("x", {{kRows, kWidth}, DType::f64});
  for (const std::string layer : {"a", "b"}) {
    const Wire y = normed(g, info, x, layer);
    const Wire terms[] = {x, branch(g, y, layer + "1"), branch(g, y, layer + "2")};
    x = sum(terms);
  }
  return normed(g, info, x, "final");
}

// one branch behind the norm and one beside it: the gradient that meets the norm's own has two terms
Wire beside(Graph& g, const NormInfo& info) {
  Wire x = g.input("x", {{kRows, kWidth}, DType::f64});
  for (const std::string layer : {"a", "b"}) {
    const Wire terms[] = {x, branch(g, normed(g, info, x, layer), layer + "1"), branch(g, x, layer + "2")};
    x = sum(terms);
  }
  return normed(g, info, x, "final");
}

struct Outcome {
  std::map<std::string, std::vector<double>> results;
  std::unordered_map<std::string, int> fired;
  std::size_t nodes = 0;
};

Outcome run(const Build& build, const NormInfo& info, const std::vector<Rewrite>& rewrites) {
  Graph graph;
  const Wire y = build(graph, info);
  Wires wrt = graph.parameters();
  wrt.push_back(graph.find("x"));
  const Wires gradients = differentiate(curved_loss_of(y), wrt);
  std::vector<std::string> names = {"y"};
  graph.output("y", y);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    names.push_back("d/" + wrt[i].name());
    graph.output(names.back(), gradients[i]);
  }
  Outcome outcome;
  outcome.fired = fuse(graph, rewrites);
  CpuSession session(test::plain_plan(graph));
  fill(session, 1);
  session.run();
  for (const std::string& name : names) outcome.results[name] = read(session, name);
  outcome.nodes = session.plan().steps().size();
  return outcome;
}

void expect_same(const Build& build, int add_norm, int norm_backward_add) {
  for (const char* name : {"layer", "weightless", "rms", "prms", "scale"}) {
    SCOPED_TRACE(name);
    const Outcome plain = run(build, norm(name), {}), fused = run(build, norm(name), norm_fusions());
    EXPECT_EQ(fused.fired.at("add_norm"), add_norm);
    EXPECT_EQ(fused.fired.at("norm_backward_add"), norm_backward_add);
    EXPECT_LT(fused.nodes, plain.nodes);
    for (const auto& [result, values] : plain.results) {
      ASSERT_GT(largest(values), 0) << result;
      expect_close(fused.results.at(result), values, 1e-11 * (1 + largest(values)), result);
    }
  }
}

TEST(NormFusions, PreNorm) { expect_same(pre_norm, 3, 3); }
TEST(NormFusions, PostNorm) { expect_same(post_norm, 3, 0); }
TEST(NormFusions, ParallelBranches) { expect_same(parallel, 2, 2); }
TEST(NormFusions, ABranchBesideTheNorm) { expect_same(beside, 2, 2); }

TEST(NormFusions, ForwardAloneDoesNotStoreTheSum) {
  const Type type{{512, 64}, DType::f32};
  std::vector<std::int64_t> bytes;
  std::vector<std::vector<double>> results;
  for (const bool fused : {false, true}) {
    Graph graph;
    const Wire a = graph.input("a", type), b = graph.input("b", type);
    graph.output("y", layer_norm(a + b, {}, {}));
    graph.output("z", a * 2.0);
    CpuSession session(test::plain_plan(graph, {.rewrites = fused ? norm_fusions() : std::vector<Rewrite>()}));
    fill(session, 2);
    session.run();
    results.push_back(read(session, "y"));
    EXPECT_EQ(session.plan().steps().size(), fused ? 2u : 3u);
  }
  EXPECT_EQ(results[0], results[1]);  // the same additions in the same order
}

TEST(NormFusions, KeepASumThatIsReadBeforeTheNormsParametersExist) {
  Graph graph;
  const Type type{{5, 8}, DType::f64};
  const Wire a = graph.input("a", type), b = graph.input("b", type), s = a + b;
  const Wire gain = sum_to(s, {8});  // reads the sum, and the norm reads it
  graph.output("y", layer_norm(s, gain, {}));
  EXPECT_EQ(fuse(graph, norm_fusions()).at("add_norm"), 0);
}

TEST(NormFusions, DerivativeOfAFusedNode) {
  check_gradients(
      [](Graph& g) {
        const Type type{{5, 9}, DType::f64};
        const Wire a = g.input("a", type), b = g.input("b", type), s = a + b;
        const Wire y = layer_norm(s, g.parameter("gain", {{9}, DType::f64}), {});
        const Wire both = tanh(s) * y;
        fuse(g, norm_fusions());
        return curved_loss_of(both);
      },
      {"a", "b", "gain"}, {.tolerance = 1e-6});
}

// relu behind a norm, and behind the norm of a sum, forward and backward. The CPU has no such kernel and computes the
// reference. What somebody else reads before relu stays.
TEST(NormFusions, ReluBehindANormAlongTheRow) {
  const Build build = [](Graph& g, const NormInfo& info) {
    Wire x = g.input("x", {{kRows, kWidth}, DType::f64});
    for (const std::string layer : {"a", "b"})
      x = x + branch(g, activate(normed(g, info, x, layer), Activation::relu), layer);
    const Wire last = normed(g, info, x, "final");
    return activate(last, Activation::relu) + last * 0.5;
  };
  std::vector<Rewrite> rewrites = norm_fusions();
  for (const Rewrite& rewrite : norm_relu_fusions()) rewrites.push_back(rewrite);
  for (const char* name : {"layer", "weightless", "rms", "prms", "scale"}) {
    SCOPED_TRACE(name);
    const Outcome plain = run(build, norm(name), {}), fused = run(build, norm(name), rewrites);
    EXPECT_EQ(fused.fired.at("row_norm_relu"), 2);
    for (const auto& [result, values] : plain.results) {
      ASSERT_GT(largest(values), 0) << result;
      expect_close(fused.results.at(result), values, 1e-11 * (1 + largest(values)), result);
    }
  }
}

// relu behind a norm over the batch, and behind its sum with the stream, forward and backward. The CPU has no such
// kernels and computes their references.
TEST(NormFusions, ReluBehindANormOverPositions) {
  const Build build = [](Graph& g, const NormInfo&) {
    const Type channels{{6}, DType::f64};
    const auto relu_norm = [&](Wire x, const std::string& name, Wire added) {
      const Wire y = batch_norm(x, g.parameter(name + ".gain", channels), g.parameter(name + ".bias", channels));
      return activate(added ? added + y : y, Activation::relu);
    };
    const Wire x = g.input("x", {{3, 7, 6}, DType::f64});
    const Wire inner = relu_norm(x * g.parameter("first", channels), "a", {});
    return relu_norm(inner * g.parameter("second", channels), "b", x) * 1.5;
  };
  const Outcome plain = run(build, norm("layer"), {}), fused = run(build, norm("layer"), channel_norm_fusions());
  EXPECT_EQ(fused.fired.at("channel_norm_relu"), 2);
  EXPECT_EQ(fused.fired.at("channel_norm_relu_backward"), 1);
  for (const auto& [result, values] : plain.results) {
    ASSERT_GT(largest(values), 0) << result;
    expect_close(fused.results.at(result), values, 1e-11 * (1 + largest(values)), result);
  }
}

}  // namespace
}  // namespace norma
