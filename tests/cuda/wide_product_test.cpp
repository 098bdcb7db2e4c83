// Products of a factor whose rows begin anywhere, with 64 columns, for many members in TF32: they have a kernel of
// their own; and neighbouring sizes, which have not.
#include "cuda/gradients.h"
#include "norma/ops/matmul.h"

namespace norma {
namespace {

using test::rounded;

struct WideSize {
  std::int64_t rows, wide, columns;
  int members;
};

void build_products(Graph& graph, DType dtype, const WideSize& size) {
  const Wire x = graph.input("x", {{size.rows, size.wide}, dtype});
  graph.output("product", matmul_rows(x, graph.input("w", {{size.wide, size.columns}, dtype})));
  graph.output("gradient", matmul_reduce_rows(x, graph.input("dy", {{size.rows, size.columns}, dtype})));
}

// Rows and depths that are and are not whole tiles and steps; the last members are few, narrow or aligned.
TEST(CudaWideProduct, AgreesWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const WideSize size : std::vector<WideSize>{{1, 257, 64, 264},
                                                   {31, 513, 64, 100},
                                                   {300, 263, 64, 133},
                                                   {257, 1433, 64, 45},
                                                   {4000, 259, 64, 17},
                                                   {70, 8709, 64, 8},
                                                   {300, 1433, 64, 2},
                                                   {300, 255, 64, 133},
                                                   {300, 264, 64, 133},
                                                   {300, 263, 60, 133}}) {
    const auto build = [=](Graph& graph, DType dtype) { build_products(graph, dtype, size); };
    const test::Run run{.build = build, .members = size.members, .inactive = 1};
    EXPECT_EQ(rounded(run, Precision::tf32, 0x1p-9), "")
        << size.rows << " x " << size.wide << " by " << size.columns << ", " << size.members << " members";
  }
}

// What lies behind a row's end is the next row, which must not come in, even as NaN times zero.
TEST(CudaWideProduct, RowsDoNotSeeEachOther) {
  SKIP_WITHOUT_GPU();
  Graph graph;
  const WideSize size{.rows = 40, .wide = 259, .columns = 64, .members = 264};
  build_products(graph, DType::f32, size);
  const auto session = make_session(compile(graph, cuda_backend()), {.members = size.members, .tf32 = true});
  std::vector<double> x(static_cast<std::size_t>(size.rows * size.wide), 1.0);
  const auto ones = [](std::int64_t count) { return std::vector<double>(static_cast<std::size_t>(count), 1.0); };
  x[static_cast<std::size_t>(7 * size.wide)] = std::numeric_limits<double>::quiet_NaN();  // the first of row 7
  for (int member = 0; member < size.members; ++member) {
    session->stage_numbers(session->handle("x"), member, x);
    session->stage_numbers(session->handle("w"), member, ones(size.wide * size.columns));
    session->stage_numbers(session->handle("dy"), member, ones(size.rows * size.columns));
  }
  session->run();
  const test::Tensors found = test::results_of(*session, size.members - 1);
  for (std::int64_t i = 0; i < size.rows; ++i)
    EXPECT_EQ(std::isnan(found.at("product")[static_cast<std::size_t>(i * size.columns)]), i == 7) << i;
  for (std::int64_t i = 0; i < size.wide; ++i)
    EXPECT_EQ(std::isnan(found.at("gradient")[static_cast<std::size_t>(i * size.columns)]), i == 0) << i;
}

TEST(CudaWideProduct, TwoRunsGiveTheSameBits) {
  SKIP_WITHOUT_GPU();
  const auto build = [](Graph& graph, DType dtype) { build_products(graph, dtype, {300, 263, 64, 133}); };
  const test::Run run{.build = build, .members = 133, .tf32 = true};
  const auto first = test::run_on(cuda_backend(), DType::f32, run);
  EXPECT_EQ(first, test::run_on(cuda_backend(), DType::f32, run));
  EXPECT_NE(first.front().at("product"), first.back().at("product")) << "other members have other numbers";
}

}  // namespace
}  // namespace norma
