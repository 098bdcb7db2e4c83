// Attention over neighbours: gradients, kernel against reference, threads, a graph by hand, errors.
#include "norma/ops/neighbour_attention.h"

#include "ops/graph_check.h"

namespace norma {
namespace {

using test::check_gradients;
using test::Edges;
using test::edges_type;
using test::error_of;
using test::hub_edges;
using test::with_room;

Wire attended(Graph& g, DType dtype, std::int64_t nodes, std::int64_t heads, std::int64_t width, const Edges& edges) {
  return neighbour_attention(g.input("x", {{nodes, heads * width}, dtype}), g.input("query", {{nodes, heads}, dtype}),
                             g.input("key", {{nodes, heads}, dtype}), g.input("edges", edges_type(edges)),
                             {.heads = heads});
}

TEST(NeighbourAttention, Gradients) {
  const Edges edges = with_room(hub_edges(8, 5), 8, 3);
  const auto prepare = [&](CpuSession& session) { session.write<std::int32_t>("edges", edges, 0); };
  const auto value = [&](Graph& g) { return attended(g, DType::f64, 8, 2, 3, edges); };
  check_gradients([&](Graph& g) { return sum_all(square(value(g))); }, {"x", "query", "key"},
                  {.tolerance = 1e-6, .prepare = prepare});
  check_gradients(
      [&](Graph& g) {
        const Wire loss = sum_all(square(value(g)));
        return sum_all(square(differentiate(loss, Wires{g.find("key")})[0]));
      },
      {"x", "query", "key"}, {.tolerance = 1e-5, .prepare = prepare});
}

// With equal scores the softmax is the mean; with one that is far above the others, that neighbour.
TEST(NeighbourAttention, ByHand) {
  const Edges edges = {0, 0, 1, /**/ 0, 1, 0};
  Graph g;
  g.output("y", attended(g, DType::f32, 3, 1, 1, edges));
  CpuSession session(test::plain_plan(g), {.threads = 1});
  session.write<std::int32_t>("edges", edges, 0);
  session.write<float>("x", std::vector<float>{2, 4, 8}, 0);
  session.write<float>("query", std::vector<float>{0, 0, 0}, 0);
  for (const auto& [key, expected] : {std::pair{0.0f, 3.0f}, {1e4f, 4.0f}}) {
    session.write<float>("key", std::vector<float>{0, key, 0}, 0);
    session.run();
    EXPECT_FLOAT_EQ(session.tensor<float>("y")[0], expected);
    EXPECT_FLOAT_EQ(session.tensor<float>("y")[1], 2) << "one neighbour";
    EXPECT_FLOAT_EQ(session.tensor<float>("y")[2], 0) << "none";
  }
}

TEST(NeighbourAttention, KernelsEqualReferencesOnAnyNumberOfThreads) {
  for (const std::int64_t nodes : {1, 2, 33, 700}) {
    for (const auto& [heads, width] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 5}, {4, 17}}) {
      const Edges edges = with_room(hub_edges(nodes, static_cast<std::uint64_t>(3 * nodes)), nodes, 4);
      Graph g;
      const Wire y = attended(g, DType::f32, nodes, heads, width, edges);
      Wires in;
      for (const char* name : {"x", "query", "key", "edges"}) in.push_back(g.find(name));
      const Wire reference = NeighbourAttention({.heads = heads}).reference(in)[0];
      const Wire dout[] = {g.input("dy", y.type())}, out[] = {y}, expected[] = {reference};
      const Wires wrt(in.begin(), in.begin() + 3);
      g.output("y", y);
      g.output("expected y", reference);
      const Wires ours = pull_back(out, dout, wrt), theirs = pull_back(expected, dout, wrt);
      for (std::size_t i = 0; i < 3; ++i) {
        g.output("d" + std::to_string(i), ours[i]);
        g.output("expected d" + std::to_string(i), theirs[i]);
      }
      for (const std::string name : {"y", "d0", "d1", "d2"}) {
        const std::vector<float> got = test::run_with_ids(g, "edges", edges, name, 1);
        EXPECT_EQ(got, test::run_with_ids(g, "edges", edges, name, 3)) << name;
        const std::vector<float> wanted = test::run_with_ids(g, "edges", edges, "expected " + name, 1);
        float largest = 1;
        for (const float v : wanted) largest = std::max(largest, std::abs(v));
        for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 2e-5 * largest) << name << " " << i;
      }
    }
  }
}

TEST(NeighbourAttention, RefusesWhatDoesNotSuit) {
  Graph g;
  const Wire x = g.input("x", {{5, 7}, DType::f32}), q = g.input("q", {{5, 2}, DType::f32});
  const Wire edges = g.input("edges", {{2, 5}, DType::i32});
  EXPECT_NE(error_of([&] { neighbour_attention(x, q, q, edges, {.heads = 2}); }).find("needs [nodes, 2 heads * width]"),
            std::string::npos);
  EXPECT_NE(error_of([&] { neighbour_attention(x, q, q, edges, {.heads = 7}); }).find("queries must be f32[5, 7]"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
