// Norms of a stream of bf16, whose backward pass has forms of its own: a row in a part of a warp, in one warp, in
// several; with and without a residual.
#include "cuda/gradients.h"
#include "norma/graph/sum.h"
#include "norma/norms/row.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"
#include "norms/cuda/row_launch.h"

namespace norma {
namespace {

void build_norms(Graph& graph, DType dtype, std::int64_t rows, std::int64_t width) {
  Wire x = graph.parameter("x", {{rows, width}, dtype}) * graph.parameter("factors", {{width}, dtype});
  graph.narrow_stream(x);
  for (const std::string layer : {"0", "1"}) {
    const Wire gain = graph.parameter("gain" + layer, {{width}, dtype});
    x = x + layer_norm(x, gain, graph.parameter("bias" + layer, {{width}, dtype}));
  }
  test::with_gradients(graph, rms_norm(x, graph.parameter("gain", {{width}, dtype})));
}

TEST(CudaNorms, OfANarrowStream) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {40, 256, 264, 512, 520, 600, 768, 776, 1600}) {
    for (const std::int64_t rows : {1, 33, 4300}) {
      const auto build = [=](Graph& graph, DType dtype) { build_norms(graph, dtype, rows, width); };
      EXPECT_EQ(test::rounded({.build = build, .members = 2}, Precision::bf16, 8 * 0x1p-8), "")
          << rows << " rows of " << width;
    }
  }
}

// What the backward pass makes of a stream, summed over its rows on the way: by the kernel where it has a form for
// that, else by a pass more.
TEST(CudaNorms, SumTheirTotals) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {8, 12, 40, 64, 72, 513, 520, 600, 768, 776}) {
    for (const std::int64_t rows : {1, 33, 4300}) {
      for (const int residuals : {0, 1}) {
        const auto build = [=](Graph& graph, DType dtype) {
          const Wire x = graph.parameter("x", {{rows, width}, dtype}) * graph.parameter("factors", {{width}, dtype});
          graph.narrow_stream(x);
          const Wire gain = graph.parameter("gain", {{width}, dtype}), bias = graph.parameter("bias", {{width}, dtype});
          const Wire y = layer_norm(x, gain, bias);
          pull_back(Wires{y}, Wires{graph.input("dy", y.type())}, Wires{x, gain, bias});
          const auto found = std::find_if(graph.nodes().begin(), graph.nodes().end(),
                                          [](const Node& node) { return node.op->name() == "layer_norm_backward"; });
          Wires in;
          for (const int id : found->inputs) in.push_back(Wire(&graph, id));
          if (residuals > 0) in.push_back(graph.input("residual", {{rows, width}, dtype}));
          const auto& op = dynamic_cast<const RowNormBackward&>(*found->op);
          const Wires out =
              graph.apply(std::make_shared<RowNormBackward>(op.definition(), op.options(), residuals, 0, false,
                                                            cuda::enough_backward_lines(rows, width), TotalSums::lines),
                          in);
          graph.output("dx", out[0]);
          graph.output("dgain", sum_to(out[1], {width}));
          graph.output("dbias", sum_to(out[2], {width}));
          graph.output("total", sum_to(out[3], {width}));
        };
        const std::string what = fmt::format("{} rows of {}, {} residuals", rows, width, residuals);
        const test::Run run{.build = build, .members = 3, .inactive = 1};
        EXPECT_EQ(test::rounded(run, Precision::bf16, 8 * 0x1p-8), "") << what;
        EXPECT_EQ(test::rounded(run, Precision::f32, 1e-4), "") << what;
      }
    }
  }
}

// That those are the kernels that the test above runs. Needs no GPU.
TEST(CudaNorms, ANarrowStreamHasNarrowGradients) {
  Graph graph;
  build_norms(graph, DType::f32, 33, 600);
  const auto plan = compile(graph, cuda_backend(), {.narrow = true});
  int found = 0;
  for (const Step& step : plan->steps()) {
    const Node& node = plan->nodes()[static_cast<std::size_t>(step.node)];
    if (!node.op->name().ends_with("norm_backward_add")) continue;
    const auto dtype_of = [&](int id) { return plan->values()[static_cast<std::size_t>(id)].type.dtype; };
    found += dtype_of(node.inputs[0]) == DType::bf16 && dtype_of(node.outputs[0]) == DType::bf16 ? 1 : 0;
  }
  EXPECT_GE(found, 2);
}

}  // namespace
}  // namespace norma
