// Sums over neighbours: gradients, kernel against reference, a graph by hand, errors.
#include "norma/ops/neighbours.h"

#include "norma/ops/fusions.h"
#include "norma/ops/neighbour_affine.h"
#include "ops/graph_check.h"

namespace norma {
namespace {

using test::check_gradients;
using test::Edges;
using test::edges_type;
using test::error_of;
using test::hub_edges;
using test::run_with_ids;
using test::with_room;

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

// Every form of the op on a graph with a hub, a node alone and spare pairs, of awkward sizes.
Wire form(int which, Wire x, Wire edges, Wire left, Wire right) {
  switch (which) {
    case 0: return neighbour_sum(x, edges);
    case 1: return neighbour_sum(x, edges, left);
    case 2: return neighbour_sum(x, edges, {}, right);
    case 3: return neighbour_sum(x, edges, left, right);
    default: return neighbour_max(x, edges);
  }
}

TEST(Neighbours, EveryFormHasTheRightGradients) {
  const Edges edges = with_room(hub_edges(9, 6), 9, 3);
  for (int which = 0; which < 5; ++which) {
    SCOPED_TRACE(which);
    const auto value = [&](Graph& g) {
      const Wire x = g.input("x", {{9, 1, 3}, DType::f64}), e = g.input("edges", edges_type(edges));
      const Wire left = g.input("left", {{9}, DType::f64}), right = g.input("right", {{9}, DType::f64});
      return form(which, x, e, left, right);
    };
    std::vector<std::string> names = {"x"};
    if (which == 1 || which == 3) names.emplace_back("left");
    if (which == 2 || which == 3) names.emplace_back("right");
    const auto prepare = [&](CpuSession& session) { session.write<std::int32_t>("edges", edges, 0); };
    check_gradients([&](Graph& g) { return sum_all(square(value(g))); }, names, {.prepare = prepare});
    check_gradients(
        [&](Graph& g) {
          const Wire loss = sum_all(square(square(value(g))));
          return sum_all(square(differentiate(loss, Wires{g.find("x")})[0]));
        },
        names, {.tolerance = 1e-5, .prepare = prepare});
  }
}

TEST(Neighbours, KernelsEqualReferences) {
  for (const std::int64_t nodes : {1, 2, 31, 333}) {
    for (const std::int64_t width : {1, 31, 64, 130}) {
      for (int which = 0; which < 5; ++which) {
        SCOPED_TRACE(fmt::format("{} nodes, width {}, form {}", nodes, width, which));
        if (which == 4 && nodes * width > 3000) continue;  // its reference has all pairs of nodes
        const Edges edges = with_room(hub_edges(nodes, static_cast<std::uint64_t>(2 * nodes)), nodes, 5);
        Graph g;
        const Wire x = g.input("x", {{nodes, width}, DType::f32}), e = g.input("edges", edges_type(edges));
        const Wire left = g.input("left", {{nodes}, DType::f32}), right = g.input("right", {{nodes}, DType::f32});
        const Wire y = form(which, x, e, left, right), dy = g.input("dy", y.type());
        const Node node = g.nodes().back();
        Wires in;
        for (const int id : node.inputs) in.emplace_back(&g, id);
        const Wire reference = node.op->reference(in)[0];
        const Wire out[] = {y}, expected[] = {reference}, dout[] = {dy}, wrt[] = {x};
        g.output("y", y);
        g.output("reference", reference);
        g.output("dx", pull_back(out, dout, wrt)[0]);
        g.output("expected", pull_back(expected, dout, wrt)[0]);
        CpuSession session(test::plain_plan(g), {.threads = 2});
        test::randomise_all(session);
        session.write<std::int32_t>("edges", edges, 0);
        session.run();
        for (const auto& [name, other] : {std::pair{"y", "reference"}, {"dx", "expected"}}) {
          const auto ours = session.tensor<float>(name), theirs = session.tensor<float>(other);
          for (std::size_t i = 0; i < ours.size(); ++i)
            ASSERT_NEAR(ours[i], theirs[i], 1e-5 * std::sqrt(static_cast<double>(nodes)) * (1 + std::abs(theirs[i])))
                << name << " " << i;
        }
      }
    }
  }
}

TEST(Neighbours, SumsHaveOneOrderOnAnyNumberOfThreads) {
  const Edges edges = hub_edges(2000, 9000);
  for (int which = 0; which < 5; ++which) {
    Graph g;
    const Wire x = g.input("x", {{2000, 37}, DType::f32}), e = g.input("edges", edges_type(edges));
    const Wire y = form(which, x, e, g.input("left", {{2000}, DType::f32}), g.input("right", {{2000}, DType::f32}));
    g.output("dx", differentiate(sum_all(square(y)), Wires{x})[0]);
    const std::vector<float> alone = run_with_ids(g, "edges", edges, "dx", 1);
    for (const int threads : {2, 3, 7}) EXPECT_EQ(run_with_ids(g, "edges", edges, "dx", threads), alone);
  }
}

// A bias and an activation behind a sum are one op: its kernel equals its reference, and the fused graph the other.
TEST(Neighbours, TakeABiasAndAnActivation) {
  for (const std::int64_t width : {1, 31, 64, 130}) {
    for (const Activation f : {Activation::none, Activation::relu, Activation::gelu}) {
      for (int which = 0; which < 4; ++which) {
        SCOPED_TRACE(fmt::format("width {}, {}, form {}", width, name_of(f), which));
        const Edges edges = with_room(hub_edges(77, 150), 77, 5);
        const auto run = [&](bool fused, const char* also) {
          Graph g;
          const Wire x = g.input("x", {{77, 1, width}, DType::f32}), e = g.input("edges", edges_type(edges));
          const Wire left = g.input("left", {{77}, DType::f32}), right = g.input("right", {{77}, DType::f32});
          const Wire b = g.parameter("b", {{width}, DType::f32});
          const Wire y = activate(form(which, x, e, left, right) + b, f);
          const Wires wrt = {x, b}, gradients = differentiate(sum_all(square(y)), wrt);
          g.output("y", y);
          g.output("dx", gradients[0]);
          g.output("db", gradients[1]);
          int fired = 0;
          if (fused) {
            for (const auto& [name, count] : fuse(g, neighbour_fusions())) fired += count;
            EXPECT_EQ(fired, f == Activation::none ? 1 : 2);
          }
          return run_with_ids(g, "edges", edges, also, 3);
        };
        for (const char* name : {"y", "dx", "db"}) {
          const std::vector<float> ours = run(true, name), theirs = run(false, name);
          double largest = 0;
          for (const float one : theirs) largest = std::max(largest, std::abs(static_cast<double>(one)));
          ASSERT_GT(largest, 0);
          for (std::size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], theirs[i], 2e-5 * largest) << name << i;
        }
      }
    }
  }
}

TEST(Neighbours, ABiasMustFit) {
  Graph g;
  const Wire x = g.input("x", {{5, 3}, DType::f32}), edges = g.input("edges", {{2, 5}, DType::i32});
  const Wire in[] = {x, edges, g.input("b", {{5}, DType::f32})};
  const auto op = std::make_shared<NeighbourAffine>(false, false, Activation::relu);
  EXPECT_NE(error_of([&] { g.apply(op, in); }).find("the bias"), std::string::npos);
}

// A node of 2 x 3 channels has six numbers, and a bias of three is added to each half.
TEST(Neighbours, ABiasOfThePartsOfANodeStaysOutside) {
  Graph g;
  const Wire x = g.input("x", {{5, 2, 3}, DType::f32}), edges = g.input("edges", {{2, 5}, DType::i32});
  g.output("y", neighbour_sum(x, edges) + g.input("b", {{3}, DType::f32}));
  EXPECT_EQ(fuse(g, neighbour_fusions())["neighbour_bias"], 0);
}

TEST(Neighbours, TheLargestIsTheFirstOfEquals) {
  Graph g;
  const Wire x = g.input("x", {{5, 1}, DType::f32}), edges = g.input("edges", {{2, 5}, DType::i32});
  const Wire y = neighbour_max(x, edges);
  g.output("y", y);
  g.output("dx", differentiate(sum_all(y), Wires{x})[0]);
  CpuSession session(test::plain_plan(g), {.threads = 1});
  session.write<std::int32_t>("edges", kEdges, 0);
  session.write<float>("x", std::vector<float>{-3, -1, -3, -7, 9}, 0);
  session.run();
  const auto y_is = [&](const char* name) {
    const auto t = session.tensor<float>(name);
    return std::vector<float>(t.begin(), t.end());
  };
  EXPECT_EQ(y_is("y"), (std::vector<float>{-1, -3, -1, -7, 0})) << "of 4, which is alone, nothing";
  EXPECT_EQ(y_is("dx"), (std::vector<float>{1, 2, 0, 1, 0})) << "of 0 and 2, which are equal, the first";
}

TEST(Neighbours, RefuseWhatIsNoGraph) {
  Graph g;
  const Wire x = g.input("x", {{5, 2}, DType::f32}), flat = g.input("flat", {{5}, DType::f32});
  const Wire edges = g.input("edges", {{2, 5}, DType::i32}), three = g.input("three", {{3, 5}, DType::i32});
  EXPECT_NE(error_of([&] { neighbour_sum(flat, edges); }).find("needs [nodes, channels]"), std::string::npos);
  EXPECT_NE(error_of([&] {
              neighbour_sum(x, edges, flat, g.input("few", {{4}, DType::f32}));
            }).find("a scale of nodes must be f32[5] but is f32[4]"),
            std::string::npos);
  EXPECT_NE(error_of([&] { neighbour_sum(x, three); }).find("edges must be i32[2, edges] but are i32[3, 5]"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
