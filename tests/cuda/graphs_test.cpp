// Ops of graphs on the GPU: neighbours and segments.
#include "cuda/gradients.h"
#include "norma/norms/row.h"
#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"
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

// A sum over neighbours: scaled or not, with a bias and an activation or without.
struct NeighbourForm {
  bool left = false, right = false, bias = false;
  Activation activation = Activation::none;
};

auto neighbour_form(const NeighbourForm& form, std::int64_t nodes, std::int64_t edges, std::int64_t width) {
  return [=](Graph& graph, DType dtype) {
    const Wire left = form.left ? graph.input("left", {{nodes}, dtype}) : Wire();
    const Wire right = form.right ? graph.input("right", {{nodes}, dtype}) : Wire();
    Wire y = neighbour_sum(graph.parameter("x", {{nodes, width}, dtype}),
                           graph.input("edges", {{2, edges}, DType::i32}), left, right);
    if (form.bias) y = y + graph.parameter("bias", {{width}, dtype});
    with_gradients(graph, activate(y, form.activation));
  };
}

const std::vector<NeighbourForm> kNeighbourForms = {{},
                                                    {.left = true, .right = true},
                                                    {.right = true, .bias = true},
                                                    {.left = true, .right = true, .bias = true},
                                                    {.left = true, .bias = true, .activation = Activation::relu},
                                                    {.bias = true, .activation = Activation::gelu}};

// Nodes without edges, and some that thousands lead to.
TEST(CudaNeighbours, AgreeWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const auto& [nodes, edges, width] : std::vector<std::array<std::int64_t, 3>>{{4, 5, 6},
                                                                                    {1, 40, 3},
                                                                                    {300, 2000, 64},
                                                                                    {300, 1999, 16},
                                                                                    {50, 3000, 130},
                                                                                    {7, 3, 256},
                                                                                    {3, 2000, 512},
                                                                                    {777, 3001, 516}}) {
    for (const NeighbourForm& form : kNeighbourForms) {
      // Among very many numbers one is so near to zero that rounding decides on relu's derivative.
      if (form.activation == Activation::relu && nodes > 50) continue;
      EXPECT_EQ(test::disagreement(
                    {.build = neighbour_form(form, nodes, edges, width), .below = nodes, .members = 3, .inactive = 1}),
                "")
          << nodes << " " << edges << " " << width << " " << form.left << form.right << form.bias << " "
          << name_of(form.activation);
    }
  }
}

// Pairs of the node behind the last are none; neighbours that do not exist make NaN.
TEST(CudaNeighbours, WhatIsNotThere) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {16, 512}) {
    for (const NeighbourForm& form : kNeighbourForms) {
      EXPECT_EQ(test::disagreement({.build = neighbour_form(form, 12, 30, width), .below = 13, .members = 3}), "")
          << width << " " << form.left << form.right << form.bias << " " << name_of(form.activation);
    }
  }
}

// The sum with its bias, the stream it is added to and the norm of that, by lanes that have the whole row.
auto normed_neighbours(std::int64_t nodes, std::int64_t edges, std::int64_t width, bool layer, bool relu) {
  return [=](Graph& graph, DType dtype) {
    const Type rows{{nodes, width}, dtype}, channels{{width}, dtype};
    const Wire half = graph.input("half", {{nodes}, dtype});
    const Wire summed = neighbour_sum(graph.parameter("x", rows), graph.input("edges", {{2, edges}, DType::i32}), half,
                                      relu ? half : Wire()) +
                        graph.parameter("bias", channels);
    const Wire stream = graph.parameter("stream", rows) + summed, gain = graph.parameter("gain", channels);
    const Wire y = layer ? layer_norm(stream, gain, graph.parameter("shift", channels)) : rms_norm(stream, gain);
    // The sum and what is added to the stream are read besides, as the next layer and probes read them.
    with_gradients(graph, (relu ? activate(y, Activation::relu) : y) + stream * summed);
  };
}

TEST(CudaNeighbours, WithTheNormOfTheStreamAgreeWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const auto& [nodes, edges, width] : std::vector<std::array<std::int64_t, 3>>{
           {4, 5, 64}, {1, 40, 32}, {300, 2000, 64}, {50, 3000, 128}, {7, 3, 128}, {3, 2000, 32}, {777, 3001, 64}}) {
    for (const bool layer : {true, false}) {
      for (const bool relu : {false, true}) {
        if (relu && nodes > 50) continue;  // as above
        EXPECT_EQ(test::disagreement({.build = normed_neighbours(nodes, edges, width, layer, relu),
                                      .below = nodes,
                                      .members = 3,
                                      .inactive = 1}),
                  "")
            << nodes << " " << edges << " " << width << " " << layer << relu;
      }
    }
  }
}

// The precision of a stream that is wide, and of rows that are narrow.
TEST(CudaNeighbours, WithTheNormOfTheStreamInLowerPrecision) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {32, 64, 128}) {
    const auto build = [=](Graph& graph, DType dtype) {
      const Type channels{{width}, dtype}, weight{{width, width}, dtype};
      const Wire x = graph.parameter("x", {{60, width}, dtype});
      const Wire summed =
          neighbour_sum(matmul_rows(x, graph.parameter("w", weight)), graph.input("edges", {{2, 500}, DType::i32})) +
          graph.parameter("bias", channels);
      const Wire y = layer_norm(x + summed, graph.parameter("gain", channels), {});
      with_gradients(graph, matmul_rows(y, graph.parameter("v", weight)) + summed);
    };
    EXPECT_EQ(rounded({.build = build, .below = 60, .members = 2}, Precision::bf16, 0.03), "") << width;
  }
}

// Nodes share blocks in fours with many members and have one of their own alone.
TEST(CudaNeighbours, WithTheNormOfTheStreamHaveTheSameBitsAloneAndInACohort) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {32, 64, 128}) {
    const auto build = normed_neighbours(2708, 13264, width, true, true);
    const auto alone = test::run_on(cuda_backend(), DType::f32, {.build = build, .below = 2708});
    const auto many = test::run_on(cuda_backend(), DType::f32, {.build = build, .below = 2708, .members = 48});
    EXPECT_EQ(alone.front().at("result"), many.front().at("result")) << width;
    EXPECT_EQ(alone.front().at("d/x"), many.front().at("d/x")) << width;
    EXPECT_NE(many.front().at("result"), many.back().at("result")) << "other members have other numbers";
  }
}

// What is added to the stream is written in watched runs alone, and nothing else differs between the two.
TEST(CudaNeighbours, WhatProbesAloneReadIsMadeForThem) {
  SKIP_WITHOUT_GPU();
  const auto session_of = [](const Backend& backend) {
    Graph graph;
    const Type rows{{300, 64}, DType::f32}, channels{{64}, DType::f32};
    const Wire summed = neighbour_sum(graph.parameter("x", rows), graph.input("edges", {{2, 2000}, DType::i32})) +
                        graph.parameter("bias", channels);
    graph.watch("seen", summed * 2.0);
    const Wire y = layer_norm(graph.parameter("stream", rows) + summed, graph.parameter("gain", channels), {});
    with_gradients(graph, activate(y, Activation::gelu));
    auto session = make_session(compile(graph, backend), {.members = 2, .threads = 1});
    for (int member = 0; member < 2; ++member) test::stage_start(*session, member, 5, 300);
    return session;
  };
  const auto cpu = session_of(cpu_backend()), gpu = session_of(cuda_backend());
  cpu->run(Watching::yes);
  gpu->run(Watching::no);
  const std::vector<double> result = gpu->numbers("result", 1), gradient = gpu->numbers("d/x", 1);
  for (int run = 0; run < 4; ++run) {  // the last ones are recorded
    gpu->run(Watching::yes);
    EXPECT_EQ(gpu->numbers("result", 1), result);
    EXPECT_EQ(gpu->numbers("d/x", 1), gradient);
    EXPECT_LT(test::distance(cpu->numbers("seen", 1), gpu->numbers("seen", 1)), 1e-4);
    gpu->run(Watching::no);
    EXPECT_EQ(gpu->numbers("result", 1), result);
  }
}

TEST(CudaNeighbours, AMemberHasTheSameBitsAloneAndInACohort) {
  SKIP_WITHOUT_GPU();
  for (const NeighbourForm& form : kNeighbourForms) {
    const auto build = neighbour_form(form, 300, 2001, 64);
    const auto alone = test::run_on(cuda_backend(), DType::f32, {.build = build, .below = 300});
    const auto many = test::run_on(cuda_backend(), DType::f32, {.build = build, .below = 300, .members = 16});
    EXPECT_EQ(alone.front().at("result"), many.front().at("result"));
    EXPECT_EQ(alone.front().at("d/x"), many.front().at("d/x"));
    EXPECT_NE(many.front().at("result"), many.back().at("result")) << "other members have other numbers";
  }
}

// GELU and not relu, whose derivative rounding turns over where it is given next to nothing.
TEST(CudaNeighbours, InLowerPrecision) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {64, 200}) {
    for (const bool biased : {false, true}) {
      const auto build = [=](Graph& graph, DType dtype) {
        const Wire x = matmul_rows(graph.parameter("x", {{60, 32}, dtype}), graph.parameter("w", {{32, width}, dtype}));
        Wire y = neighbour_sum(x, graph.input("edges", {{2, 500}, DType::i32}));
        if (biased) y = activate(y + graph.parameter("bias", {{width}, dtype}), Activation::gelu);
        with_gradients(graph, matmul_rows(y, graph.parameter("v", {{width, 8}, dtype})));
      };
      EXPECT_EQ(rounded({.build = build, .below = 60, .members = 2}, Precision::bf16, 0.03), "") << width << biased;
    }
  }
}

}  // namespace
}  // namespace norma
