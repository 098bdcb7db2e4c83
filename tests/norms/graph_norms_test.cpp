// Norms over nodes of several graphs: each graph by itself, as the conformance suite has it for one.
#include "norma/norms/graph.h"
#include "norms/conformance.h"

namespace norma {
namespace {

using namespace test;

const std::vector<std::int32_t> kGraphOf = {0, 0, 0, 0, 2, 2, 2, 3, 3};  // graph 1 has no nodes, graph 3 is none

Wire normed(const NormInfo& info, Wire x, const NodeSegments& segments) {
  Graph& g = x.graph();
  return apply_norm(info, x, declare_norm(g, info, x.shape().channels(), x.dtype()), {.segments = segments});
}

class NodeNorms : public testing::TestWithParam<std::string> {};

TEST_P(NodeNorms, AreOfEachGraphByItself) {
  const NormInfo& info = norm(GetParam());
  Graph all;
  const Wire x = all.input("x", {{9, 1, 5}, DType::f64}), ids = all.input("ids", {{9}, DType::i32});
  all.output("y", normed(info, x, {.ids = ids, .count = 3}));
  CpuSession together(plain_plan(all), {.threads = 1});
  randomise_all(together, 3);
  together.write<std::int32_t>("ids", kGraphOf, 0);
  together.run();
  for (const auto& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, 4}, {4, 3}}) {
    Graph one;
    one.output("y", normed(info, one.input("x", {{count, 1, 5}, DType::f64}), {}));
    CpuSession alone(plain_plan(one), {.threads = 1});
    randomise_all(alone, 3);
    for (std::int64_t i = 0; i < count * 5; ++i)
      alone.tensor<double>("x")[static_cast<std::size_t>(i)] =
          together.tensor<double>("x")[static_cast<std::size_t>(first * 5 + i)];
    alone.run();
    for (std::int64_t i = 0; i < count * 5; ++i)
      ASSERT_NEAR(alone.tensor<double>("y")[static_cast<std::size_t>(i)],
                  together.tensor<double>("y")[static_cast<std::size_t>(first * 5 + i)], 1e-12);
  }
}

TEST_P(NodeNorms, HaveTheRightGradientsOfSeveralGraphs) {
  const NormInfo& info = norm(GetParam());
  std::vector<std::string> names = {"x"};
  for (const NormTensor& tensor : info.parameters) names.emplace_back(tensor.name);
  check_gradients(
      [&](Graph& g) {
        const Wire x = g.input("x", {{9, 1, 3}, DType::f64}), ids = g.input("ids", {{9}, DType::i32});
        return curved_loss_of(normed(info, x, {.ids = ids, .count = 3}));
      },
      names,
      {.tolerance = 1e-6, .prepare = [](CpuSession& session) { session.write<std::int32_t>("ids", kGraphOf, 0); }});
}

INSTANTIATE_TEST_SUITE_P(Graphs, NodeNorms, testing::Values("graph", "pair", "mean"),
                         [](const testing::TestParamInfo<std::string>& test) { return test.param; });

}  // namespace
}  // namespace norma
