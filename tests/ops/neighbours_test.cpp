// Sums over neighbours: gradients, kernel against reference, a graph by hand, errors.
#include "norma/ops/neighbours.h"

#include "check.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

// A path 0 - 1 - 2, 3 with itself, 4 alone; each edge in both directions, sorted.
const std::vector<std::int32_t> kEdges = {0, 1, 1, 2, 3, /**/ 1, 0, 2, 1, 3};

TEST(Neighbours, Gradients) {
  const auto sums = [](Graph& g) {
    return neighbour_sum(g.input("x", {{5, 1, 3}, DType::f64}), g.input("edges", {{2, 5}, DType::i32}));
  };
  const auto prepare = [](CpuSession& session) { session.write<std::int32_t>("edges", kEdges, 0); };
  check_gradients([&](Graph& g) { return sum_all(square(sums(g))); }, {"x"}, {.prepare = prepare});
  check_gradients(
      [&](Graph& g) {
        const Wire loss = sum_all(square(square(sums(g))));
        return sum_all(square(differentiate(loss, Wires{g.find("x")})[0]));
      },
      {"x"}, {.tolerance = 1e-5, .prepare = prepare});
}

TEST(Neighbours, AreAddedUp) {
  Graph g;
  const Wire x = g.input("x", {{5, 2}, DType::f32}), edges = g.input("edges", {{2, 5}, DType::i32});
  g.output("y", neighbour_sum(x, edges));
  g.output("reference", NeighbourSum().reference(Wires{x, edges})[0]);
  CpuSession session(test::plain_plan(g), {.threads = 2});
  session.write<float>("x", std::vector<float>{1, 10, 2, 20, 3, 30, 4, 40, 5, 50}, 0);
  session.write<std::int32_t>("edges", kEdges, 0);
  session.run();
  const std::vector<float> expected = {2, 20, 4, 40, 2, 20, 4, 40, 0, 0};
  for (const char* name : {"y", "reference"}) {
    const std::span<float> y = session.tensor<float>(name);
    EXPECT_EQ(std::vector<float>(y.begin(), y.end()), expected) << name;
  }
  std::vector<std::int32_t> far = kEdges;
  far[9] = 5;
  session.write<std::int32_t>("edges", far, 0);
  session.run();
  EXPECT_TRUE(std::isnan(session.tensor<float>("y")[6])) << "a neighbour that does not exist";
}

// Of many nodes, of every width, with members and threads.
TEST(Neighbours, KernelEqualsReference) {
  for (const std::int64_t width : {1, 31, 64}) {
    constexpr std::int64_t kNodes = 333;
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
    const RandomStream stream(1, "edges");
    for (std::uint64_t i = 0; i < 1000; ++i) {
      const auto a = static_cast<std::int32_t>(stream.below(2 * i, kNodes)),
                 b = static_cast<std::int32_t>(stream.below(2 * i + 1, kNodes));
      pairs.insert(pairs.end(), {{a, b}, {b, a}});
    }
    std::sort(pairs.begin(), pairs.end());
    std::vector<std::int32_t> edges;
    for (const auto& [node, other] : pairs) edges.push_back(node);
    for (const auto& [node, other] : pairs) edges.push_back(other);
    Graph g;
    const Wire x = g.input("x", {{kNodes, width}, DType::f32}), e = g.input("edges", {{2, 2000}, DType::i32});
    g.output("y", neighbour_sum(x, e));
    g.output("reference", NeighbourSum().reference(Wires{x, e})[0]);
    CpuSession session(test::plain_plan(g), {.threads = 2});
    test::randomise_all(session);
    session.write<std::int32_t>("edges", edges, 0);
    session.run();
    const auto y = session.tensor<float>("y"), reference = session.tensor<float>("reference");
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], reference[i]) << "both add in the order of edges";
  }
}

TEST(Neighbours, RefuseWhatIsNoGraph) {
  Graph g;
  const Wire x = g.input("x", {{5, 2}, DType::f32}), flat = g.input("flat", {{5}, DType::f32});
  const Wire edges = g.input("edges", {{2, 5}, DType::i32}), three = g.input("three", {{3, 5}, DType::i32});
  EXPECT_NE(error_of([&] { neighbour_sum(flat, edges); }).find("needs [nodes, channels]"), std::string::npos);
  EXPECT_NE(error_of([&] { neighbour_sum(x, three); }).find("edges must be i32[2, edges] but are i32[3, 5]"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
