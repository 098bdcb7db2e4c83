// A sum over neighbours with the norm of the stream behind it: fused = unfused, and when it fires. The CPU has no such
// kernel and computes the reference.
#include "norma/norms/neighbour_norm.h"

#include "norma/norms/fusions.h"
#include "norma/ops/fusions.h"
#include "norma/ops/neighbours.h"
#include "norms/conformance.h"

namespace norma {
namespace {

using namespace test;

constexpr std::int64_t kGraphNodes = 5;
const std::vector<std::int32_t> kGraphEdges = {0, 0, 1, 2, 2, 2, 4, 0, 3, 1, 0, 2, 4, 1};  // from, then to; 3 has none

struct LayersOutcome {
  std::map<std::string, std::vector<double>> results;
  int fired = 0;
};

// Two layers x + sum over neighbours + bias behind norms, with their gradients.
LayersOutcome run_layers(std::int64_t width, bool relu, bool stream_first, bool fused) {
  Graph graph;
  const Type rows{{kGraphNodes, 1, width}, DType::f64}, channels{{width}, DType::f64};
  Wire x = graph.input("x", rows);
  const Wire edges = graph.input("edges", {{2, 7}, DType::i32}),
             half = graph.input("half", {{kGraphNodes}, DType::f64});
  const auto normed = [&](const std::string& name) {
    const Wire y = layer_norm(x, graph.parameter(name + ".gain", channels), graph.parameter(name + ".shift", channels));
    return relu ? activate(y, Activation::relu) : y;
  };
  for (const std::string layer : {"a", "b"}) {
    const Wire summed = neighbour_sum(normed(layer) * graph.parameter(layer + ".weight", channels), edges, half, half);
    const Wire added = summed + graph.parameter(layer + ".bias", channels);
    graph.output(layer + ".added", added);
    x = stream_first ? x + added : added + x;
  }
  const Wire y = normed("final");
  Wires wrt = graph.parameters();
  wrt.push_back(graph.find("x"));
  const Wires gradients = differentiate(curved_loss_of(y), wrt);
  std::vector<std::string> names = {"y", "a.added", "b.added"};
  graph.output("y", y);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    names.push_back("d/" + wrt[i].name());
    graph.output(names.back(), gradients[i]);
  }
  LayersOutcome outcome;
  if (fused) {
    fuse(graph, norm_fusions());
    fuse(graph, norm_relu_fusions());
    fuse(graph, neighbour_fusions());
    outcome.fired = fuse(graph, neighbour_norm_fusions()).at("neighbour_norm");
  }
  CpuSession session(test::plain_plan(graph));
  fill(session, 1);
  session.write<std::int32_t>("edges", kGraphEdges);
  session.run();
  for (const std::string& name : names) outcome.results[name] = read(session, name);
  return outcome;
}

TEST(NeighbourNorm, IsTheSumAndTheNorm) {
  for (const bool relu : {false, true}) {
    for (const bool stream_first : {false, true}) {
      const LayersOutcome plain = run_layers(64, relu, stream_first, false),
                          fused = run_layers(64, relu, stream_first, true);
      EXPECT_EQ(fused.fired, 2);
      for (const auto& [result, values] : plain.results) {
        ASSERT_GT(largest(values), 0) << result;
        expect_close(fused.results.at(result), values, 1e-11 * (1 + largest(values)), result);
      }
    }
  }
}

TEST(NeighbourNorm, IsForRowsThatLanesCanShare) {
  EXPECT_EQ(run_layers(48, true, true, true).fired, 0);
  EXPECT_EQ(run_layers(128, true, true, true).fired, 2);
}

}  // namespace
}  // namespace norma
