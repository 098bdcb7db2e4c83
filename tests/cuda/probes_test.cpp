// Probes of several attentions in one launch.
#include "cuda/agreement.h"
#include "norma/ops/attention_probe.h"

namespace norma {
namespace {

// More layers than one op takes; one of another length has an op of its own.
constexpr int kLayers = 2 * kMostAttentionProbes + 3, kOther = 5;

void build_probes(Graph& g, DType t) {
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string name = std::to_string(layer);
    const std::int64_t time = layer == kOther ? 7 : 41, width = 24;
    Wires in;
    for (const std::string part : {"q", "k", "v"}) in.push_back(g.input(part + name, {{2, time, 3 * width}, t}));
    // A sample of which nothing is seen has no largest logit.
    const std::int32_t lengths[] = {1 + (7 * layer + 3) % static_cast<std::int32_t>(time),
                                    static_cast<std::int32_t>(time) - layer % 5};
    in.push_back(g.constant<std::int32_t>("lengths" + name, {2}, lengths));
    const Attention watched(QkvLayout::separate, {.heads = 3, .mask = Mask::causal, .scale = {}});
    g.output("probe" + name, attention_probe(watched, in));
  }
}

TEST(CudaProbes, SeveralAttentionsInOneLaunch) {
  SKIP_WITHOUT_GPU();
  const test::Run run{.build = build_probes, .members = 3, .inactive = 1};
  EXPECT_EQ(test::disagreement(run), "");
}

TEST(CudaProbes, AreGatheredWhereTheyAreAlike) {
  Graph graph;
  build_probes(graph, DType::f32);
  const auto plan = compile(graph, cuda_backend());
  std::string ops;
  for (const Step& step : plan->steps()) {
    const Node& node = plan->nodes()[static_cast<std::size_t>(step.node)];
    const std::string words = node.op->attributes();
    ops += std::string(node.op->name()) + " " + words.substr(words.rfind(' ') + 1) + "\n";
  }
  EXPECT_NE(ops.find("attention_probes x5\n"), std::string::npos) << ops;
  EXPECT_NE(ops.find("attention_probes x16\n"), std::string::npos) << ops;
  EXPECT_NE(ops.find("attention_probes x13\n"), std::string::npos) << ops;
  EXPECT_EQ(plan->steps().size(), 4u) << ops;
}

}  // namespace
}  // namespace norma
