// Embeddings with what joins them: positions, a narrow stream, and the gradient of another use of their table.
#include "norma/ops/embedding.h"
#include "cuda/gradients.h"
#include "norma/norms/row.h"
#include "norma/ops/elementwise.h"

namespace norma {
namespace {

struct TableSizes {
  std::int64_t vocabulary, time, width;
};

// Vocabularies with ids that no row has, with ids that have many rows; widths of whole accesses and others.
constexpr TableSizes kTables[] = {{3000, 33, 768}, {7, 300, 256},   {500, 5, 12},
                                  {40, 31, 13},    {129, 64, 1032}, {1, 1, 72}};

Wire tokens_and_positions(Graph& graph, DType dtype, const TableSizes& sizes) {
  const Wire table = graph.parameter("table", {{sizes.vocabulary, sizes.width}, dtype});
  const Wire positions = graph.parameter("positions", {{sizes.time + 2, sizes.width}, dtype});
  const Wire ids = graph.input("ids", {{3, sizes.time}, DType::i32});
  const Wire x = add_positions(embedding(table, ids), positions);
  graph.narrow_stream(x);
  return x;
}

void build_tied(Graph& graph, DType dtype, const TableSizes& sizes, bool tied) {
  const Wire x = tokens_and_positions(graph, dtype, sizes);
  Wire y = rms_norm(x, graph.parameter("gain", {{sizes.width}, dtype}));
  if (tied) y = y * embedding(graph.parameters()[0], graph.input("others", {{3, sizes.time}, DType::i32}));
  test::with_gradients(graph, y);
}

TEST(CudaEmbedding, WithPositionsInANarrowStream) {
  SKIP_WITHOUT_GPU();
  for (const TableSizes& sizes : kTables) {
    for (const bool tied : {false, true}) {
      const test::Run run{.build = [=](Graph& graph, DType dtype) { build_tied(graph, dtype, sizes, tied); },
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
  for (const TableSizes& sizes : kTables) {
    test::Run run{.build = [=](Graph& graph, DType dtype) { build_tied(graph, dtype, sizes, true); },
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
    build_tied(graph, DType::f32, {3000, 33, 768}, true);
    const auto plan = compile(graph, cuda_backend(), {.narrow = narrow});
    std::string names;
    int forward = 0, added = 0, as_they_come = 0;
    for (const Step& step : plan->steps()) {
      const Node& node = plan->nodes()[static_cast<std::size_t>(step.node)];
      const std::string name(node.op->name());
      names += name + " ";
      const auto dtype_of = [&](int id) { return plan->values()[static_cast<std::size_t>(id)].type.dtype; };
      const DType stream = narrow ? DType::bf16 : DType::f32;
      if (name == "embedding" && node.inputs.size() == 3) {
        ++forward;
        EXPECT_EQ(node.outputs.size(), narrow ? 2U : 1U);
        EXPECT_EQ(dtype_of(node.outputs.back()), stream);
        EXPECT_EQ(step.offsets[step.offsets.size() - 2] < 0, narrow) << "f32 is written for nobody";
      } else if (name == "embedding_backward") {
        added += node.inputs.size() == 3 ? 1 : 0;
        as_they_come += dtype_of(node.inputs[1]) == stream ? 1 : 0;
      }
      EXPECT_TRUE(name != "sum" && name != "add") << name;
    }
    EXPECT_EQ(forward, 1) << names;
    EXPECT_EQ(added, 1) << names;
    EXPECT_GE(as_they_come, 1) << names;
  }
}

}  // namespace
}  // namespace norma
