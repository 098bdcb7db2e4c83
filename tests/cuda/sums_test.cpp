// Sums over rows that are made where the tensor is made.
#include "cuda/gradients.h"
#include "norma/ops/linear.h"
#include "norma/ops/matmul_slope.h"
#include "norma/ops/reduce.h"

namespace norma {
namespace {

// Of what meets an activation's derivative, on its way out: lines of parts of tiles, sizes that the kernel does not
// take, and a number of lines that is not the kernel's.
TEST(CudaSums, OfSlopes) {
  SKIP_WITHOUT_GPU();
  for (const auto& [rows, depth, columns] : std::vector<std::array<std::int64_t, 3>>{{1, 8, 8},
                                                                                     {64, 72, 128},
                                                                                     {65, 40, 136},
                                                                                     {200, 264, 504},
                                                                                     {129, 768, 256},
                                                                                     {20000, 24, 120},
                                                                                     {130, 33, 31},
                                                                                     {70, 1032, 64}}) {
    for (const std::int64_t more : {0, 3}) {
      for (const Activation f : {Activation::relu, Activation::gelu_tanh}) {
        const auto build = [=, rows = rows, depth = depth, columns = columns](Graph& graph, DType dtype) {
          const Wire dy = graph.input("dy", {{rows, depth}, dtype}), w = graph.input("w", {{columns, depth}, dtype});
          const Wire in[] = {dy, w, graph.input("z", {{rows, columns}, dtype})};
          const std::int64_t lines = (rows + kRowsOfSlopeLine - 1) / kRowsOfSlopeLine + more;
          const Wires out = graph.apply(std::make_shared<MatMulSlope>(f, Transpose::yes, lines), in);
          graph.output("dz", out[0]);
          graph.output("sums", sum_to(out[1], {columns}));
        };
        const test::Run run{.build = build, .members = 3, .inactive = 1};
        const std::string what =
            fmt::format("{} rows of {} to {}, {} {}", rows, depth, columns, name_of(f), more == 0 ? "" : "more lines");
        EXPECT_EQ(test::rounded(run, Precision::bf16, 8 * 0x1p-8), "") << what;
        EXPECT_EQ(test::rounded(run, Precision::f32, 2e-5), "") << what;
      }
    }
  }
}

// A layer whose tensors are large enough to be rewritten so.
TEST(CudaSums, OfSlopesOfALayer) {
  SKIP_WITHOUT_GPU();
  const auto build = [](Graph& graph, DType dtype) {
    const Wire x = graph.parameter("x", {{4200, 520}, dtype}), w = graph.parameter("w", {{520, 1016}, dtype}) * 0.05;
    const Wire y = linear(x, w, graph.parameter("b", {{1016}, dtype}), Activation::gelu_tanh);
    test::with_gradients(graph, linear(y, graph.parameter("v", {{1016, 24}, dtype}) * 0.03));
  };
  Graph graph;
  build(graph, DType::f32);
  const auto plan = compile(graph, cuda_backend(), {.narrow = true});
  EXPECT_TRUE(std::any_of(plan->nodes().begin(), plan->nodes().end(), [](const Node& node) {
    return node.op->attributes().find("lines=66") != std::string::npos;
  }));
  EXPECT_EQ(test::rounded({.build = build}, Precision::bf16, 8 * 0x1p-8), "");
}

TEST(CudaSums, HaveTheSameBitsTwice) {
  SKIP_WITHOUT_GPU();
  const auto build = [](Graph& graph, DType dtype) {
    const Wire dy = graph.input("dy", {{9001, 72}, dtype}), w = graph.input("w", {{480, 72}, dtype});
    const Wire in[] = {dy, w, graph.input("z", {{9001, 480}, dtype})};
    const Wires out = graph.apply(std::make_shared<MatMulSlope>(Activation::gelu_tanh, Transpose::yes, 141), in);
    graph.output("sums", sum_to(out[1], {480}));
  };
  const auto sums = [&] {
    Graph graph;
    build(graph, DType::f32);
    const auto session = make_session(compile(graph, cuda_backend(), {.narrow = true}), {});
    test::stage_start(*session, 0, 1, 2);
    session->run();
    return test::results_of(*session, 0).at("sums");
  };
  const std::vector<double> once = sums();
  EXPECT_EQ(once, sums());
  EXPECT_GT(*std::max_element(once.begin(), once.end()), 0);
}

}  // namespace
}  // namespace norma
