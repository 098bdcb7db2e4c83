// Products of many rows with a weight of 64 x 64 in TF32, which have a kernel of their own; and neighbouring sizes,
// which have not.
#include "cuda/gradients.h"
#include "norma/ops/linear.h"
#include "norma/ops/matmul.h"
#include "norma/ops/matmul_slope.h"

namespace norma {
namespace {

using test::rounded;

constexpr double kTf32 = 0x1p-9;

std::vector<std::array<std::int64_t, 3>> thin_sizes() {  // rows, depth, columns
  return {{1, 64, 64},    {15, 64, 64},    {17, 64, 64},  {128, 64, 64}, {131, 64, 64},
          {2708, 64, 64}, {24000, 64, 64}, {33, 64, 128}, {33, 32, 64},  {33, 64, 60}};
}

TEST(CudaThinProduct, AgreesWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const auto& [rows, depth, columns] : thin_sizes()) {
    for (const Transpose weight : {Transpose::no, Transpose::yes}) {
      const auto build = [=, rows = rows, depth = depth, columns = columns](Graph& graph, DType dtype) {
        const Wire x = graph.input("x", {{rows, depth}, dtype});
        const bool turned = weight == Transpose::yes;
        const Wire w = graph.input("w", {turned ? Shape{columns, depth} : Shape{depth, columns}, dtype});
        graph.output("product", matmul_rows(x, w, weight));
        if (!turned) graph.output("linear", linear(x, w, {}, Activation::none));
      };
      const test::Run run{.build = build, .members = 3, .inactive = 1};
      EXPECT_EQ(rounded(run, Precision::tf32, kTf32), "") << rows << " " << depth << " " << columns;
    }
  }
}

TEST(CudaThinProduct, TakesADerivative) {
  SKIP_WITHOUT_GPU();
  for (const auto& [rows, depth, columns] : thin_sizes()) {
    for (const Transpose weight : {Transpose::no, Transpose::yes}) {
      for (const Activation f : {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
        const auto build = [=, rows = rows, depth = depth, columns = columns](Graph& graph, DType dtype) {
          const Wire dy = graph.input("dy", {{rows, depth}, dtype}), z = graph.input("z", {{rows, columns}, dtype});
          const bool turned = weight == Transpose::yes;
          const Wire w = graph.input("w", {turned ? Shape{columns, depth} : Shape{depth, columns}, dtype});
          graph.output("dz", matmul_slope(dy, w, z, f, weight));
        };
        const test::Run run{.build = build, .members = 3, .inactive = 1};
        EXPECT_EQ(rounded(run, Precision::tf32, kTf32), "") << rows << " " << depth << " " << columns << name_of(f);
      }
    }
  }
}

TEST(CudaThinProduct, AMemberHasTheSameBitsAloneAndInACohort) {
  SKIP_WITHOUT_GPU();
  const auto build = [](Graph& graph, DType dtype) {
    const Wire x = graph.input("x", {{1001, 64}, dtype}), w = graph.input("w", {{64, 64}, dtype});
    graph.output("y", matmul_rows(x, w));
  };
  const auto alone = test::run_on(cuda_backend(), DType::f32, {.build = build, .tf32 = true});
  const auto many = test::run_on(cuda_backend(), DType::f32, {.build = build, .members = 130, .tf32 = true});
  EXPECT_EQ(alone.front().at("y"), many.front().at("y"));
  EXPECT_NE(many.front().at("y"), many.back().at("y")) << "other members have other numbers";
}

}  // namespace
}  // namespace norma
