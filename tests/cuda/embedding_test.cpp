// Embeddings with what joins them: positions, a narrow stream, and the other use of their table.
#include "norma/ops/embedding.h"
#include "cuda/gradients.h"
#include "norma/norms/row.h"
#include "norma/ops/matmul.h"

namespace norma {
namespace {

struct Sizes {
  std::int64_t vocabulary, time, width;
};

// Vocabularies with ids that no row has, with ids that have many rows; widths of whole accesses and others.
constexpr Sizes kSizes[] = {{3000, 33, 768}, {7, 300, 256}, {500, 5, 12}, {40, 31, 13}, {129, 64, 1032}, {1, 1, 8}};

Wire declare(Graph& graph, DType dtype, const Sizes& sizes) {
  const Wire table = graph.parameter("table", {{sizes.vocabulary, sizes.width}, dtype});
  const Wire positions = graph.parameter("positions", {{sizes.time + 2, sizes.width}, dtype});
  const Wire ids = graph.input("ids", {{3, sizes.time}, DType::i32});
  const Wire x = add_positions(embedding(table, ids), positions);
  graph.narrow_stream(x);
  return x;
}

void build(Graph& graph, DType dtype, const Sizes& sizes, bool tied) {
  const Wire x = declare(graph, dtype, sizes);
  Wire y = rms_norm(x, graph.parameter("gain", {{sizes.width}, dtype}));
  if (tied) y = matmul_rows(y, graph.parameters()[0], Transpose::yes);
  test::with_gradients(graph, y);
}

TEST(CudaEmbedding, WithPositionsInANarrowStream) {
  SKIP_WITHOUT_GPU();
  for (const Sizes& sizes : kSizes) {
    for (const bool tied : {false, true}) {
      const test::Run run{.build = [=](Graph& graph, DType dtype) { build(graph, dtype, sizes, tied); },
                          .below = sizes.vocabulary,
                          .members = 3,
                          .inactive = 1};
      const std::string what = fmt::format("{} x {} x {} {}", sizes.vocabulary, sizes.time, sizes.width, tied);
      EXPECT_EQ(test::rounded(run, Precision::f32, 1e-4), "") << what;
      EXPECT_EQ(test::rounded(run, Precision::bf16, 12 * 0x1p-8), "") << what;
    }
  }
}

// What is fused has the bits of what is not.
TEST(CudaEmbedding, HasTheBitsOfItsParts) {
  SKIP_WITHOUT_GPU();
  for (const Sizes& sizes : kSizes) {
    test::Run run{.build = [=](Graph& graph, DType dtype) { build(graph, dtype, sizes, true); },
                  .below = sizes.vocabulary,
                  .members = 2};
    const auto fused = test::run_on(cuda_backend(), DType::f32, run);
    run.fuse = false;
    EXPECT_EQ(fused, test::run_on(cuda_backend(), DType::f32, run)) << sizes.vocabulary << " x " << sizes.width;
  }
}

// The stream is rounded once, and the sums of a table's rows are taken of what comes back, as it comes.
TEST(CudaEmbedding, IsOnePass) {
  for (const bool narrow : {false, true}) {
    Graph graph;
    build(graph, DType::f32, {3000, 33, 768}, true);
    const auto plan = compile(graph, cuda_backend(), {.narrow = narrow});
    std::string names;
    int forward = 0, backward = 0;
    for (const Step& step : plan->steps()) {
      const Node& node = plan->nodes()[static_cast<std::size_t>(step.node)];
      const std::string name(node.op->name());
      names += name + " ";
      const auto dtype_of = [&](int id) { return plan->values()[static_cast<std::size_t>(id)].type.dtype; };
      if (name == "embedding") {
        forward += node.inputs.size() == 3 && (node.outputs.size() == 2) == narrow ? 1 : 0;
        EXPECT_EQ(dtype_of(node.outputs.back()), narrow ? DType::bf16 : DType::f32);
      } else if (name == "embedding_backward") {
        backward += node.inputs.size() == 3 ? 1 : 0;
        EXPECT_EQ(dtype_of(node.inputs[1]), narrow ? DType::bf16 : DType::f32);
      }
      EXPECT_TRUE(name != "sum" && name != "add") << name;
    }
    EXPECT_EQ(forward, 1) << names;
    EXPECT_EQ(backward, 1) << names;
  }
}

}  // namespace
}  // namespace norma
