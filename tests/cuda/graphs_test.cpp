// Ops of graphs on the GPU: neighbours and segments.
#include "cuda/gradients.h"
#include "norma/ops/matmul.h"
#include "norma/ops/neighbour_attention.h"
#include "norma/ops/neighbours.h"
#include "norma/ops/segments.h"

namespace norma {
namespace {

using test::rounded;
using test::with_gradients;

TEST(CudaSegments, AgreeWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const Segmented kind : {Segmented::sum, Segmented::mean, Segmented::max}) {
    for (const auto& [rows, segments, width] :
         std::vector<std::array<std::int64_t, 3>>{{40, 5, 6}, {3, 9, 40}, {1000, 3, 64}, {17, 1, 33}}) {
      const auto build = [=, rows = rows, segments = segments, width = width](Graph& graph, DType dtype) {
        const Wire x = graph.parameter("x", {{rows, width}, dtype});
        with_gradients(graph, segment_reduce(kind, x, graph.input("segments", {{rows}, DType::i32}), segments));
      };
      // One row or more behind all segments.
      EXPECT_EQ(test::disagreement({.build = build, .below = segments + 1, .members = 3, .inactive = 1}), "")
          << static_cast<int>(kind) << " " << rows << " " << segments << " " << width;
    }
  }
}

TEST(CudaNeighbours, TheLargestAgreesWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const auto& [nodes, edges, width] : std::vector<std::array<std::int64_t, 3>>{
           {4, 5, 6}, {1, 40, 3}, {300, 2000, 64}, {300, 1999, 16}, {50, 3000, 130}, {7, 3, 256}}) {
    const auto build = [=, nodes = nodes, edges = edges, width = width](Graph& graph, DType dtype) {
      with_gradients(graph, neighbour_max(graph.parameter("x", {{nodes, width}, dtype}),
                                          graph.input("edges", {{2, edges}, DType::i32})));
    };
    EXPECT_EQ(test::disagreement({.build = build, .below = nodes, .members = 3, .inactive = 1}), "")
        << nodes << " " << edges << " " << width;
  }
}

TEST(CudaNeighbourAttention, AgreesWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const auto& [nodes, edges, heads, width] : std::vector<std::array<std::int64_t, 4>>{
           {4, 5, 1, 6}, {300, 2000, 4, 16}, {300, 1999, 3, 5}, {50, 3000, 2, 70}, {7, 3, 8, 8}}) {
    const auto build = [=, nodes = nodes, edges = edges, heads = heads, width = width](Graph& graph, DType dtype) {
      const Type each{{nodes, heads}, dtype};
      with_gradients(graph, neighbour_attention(graph.parameter("x", {{nodes, heads * width}, dtype}),
                                                graph.parameter("query", each), graph.parameter("keys", each),
                                                graph.input("edges", {{2, edges}, DType::i32}), {.heads = heads}));
    };
    EXPECT_EQ(test::disagreement({.build = build, .below = nodes, .members = 3, .inactive = 1}), "")
        << nodes << " " << edges << " " << heads << " " << width;
  }
}

TEST(CudaNeighbours, AgreeWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const auto& [nodes, edges, width] : std::vector<std::array<std::int64_t, 3>>{
           {4, 5, 6}, {1, 40, 3}, {300, 2000, 64}, {300, 1999, 16}, {50, 3000, 130}, {7, 3, 256}}) {
    for (const bool scaled : {false, true}) {
      const auto build = [=](Graph& graph, DType dtype) {
        const Wire left = scaled ? graph.input("left", {{nodes}, dtype}) : Wire();
        const Wire right = scaled ? graph.input("right", {{nodes}, dtype}) : Wire();
        with_gradients(graph, neighbour_sum(graph.parameter("x", {{nodes, width}, dtype}),
                                            graph.input("edges", {{2, edges}, DType::i32}), left, right));
      };
      EXPECT_EQ(test::disagreement({.build = build, .below = nodes, .members = 3, .inactive = 1}), "")
          << nodes << " " << edges << " " << width;
    }
  }
}

TEST(CudaNeighbours, InLowerPrecision) {
  SKIP_WITHOUT_GPU();
  const auto build = [](Graph& graph, DType dtype) {
    const Wire x = matmul_rows(graph.parameter("x", {{60, 32}, dtype}), graph.parameter("w", {{32, 64}, dtype}));
    const Wire y = neighbour_sum(x, graph.input("edges", {{2, 500}, DType::i32}));
    with_gradients(graph, matmul_rows(y, graph.parameter("v", {{64, 8}, dtype})));
  };
  EXPECT_EQ(rounded({.build = build, .below = 60, .members = 2}, Precision::bf16, 0.03), "");
}

}  // namespace
}  // namespace norma
