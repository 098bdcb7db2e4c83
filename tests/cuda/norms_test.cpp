// Norms of a stream of bf16, whose backward pass has forms of its own: a row in a part of a warp, in one warp, in
// several; with and without a residual.
#include "cuda/gradients.h"
#include "norma/graph/sum.h"
#include "norma/norms/row.h"
#include "norma/ops/elementwise.h"

namespace norma {
namespace {

void build_norms(Graph& graph, DType dtype, std::int64_t rows, std::int64_t width) {
  Wire x = graph.parameter("x", {{rows, width}, dtype}) * graph.parameter("first", {{width}, dtype});
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
