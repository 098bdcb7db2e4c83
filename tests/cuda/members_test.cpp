// Steps take the members of a cohort from either end by turns.
#include "cuda/gradients.h"
#include "norma/device/cuda/kernel.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"

namespace norma {
namespace {

TEST(CudaMembers, AreTheSameFromTheOtherEnd) {
  std::byte memory[5 * 256];
  std::uint8_t flags[10];
  const cuda::Members members{.base = memory, .stride = 256, .count = 5, .active = flags};
  const cuda::Members back = cuda::turned(members), again = cuda::turned(back);
  EXPECT_EQ(back.base, memory + std::size_t{4} * 256);
  EXPECT_EQ(back.stride, -256);
  EXPECT_EQ(back.active, flags + 5);
  for (const cuda::Members& same : {again, cuda::in_order(back), cuda::in_order(members)}) {
    EXPECT_EQ(same.base, members.base);
    EXPECT_EQ(same.stride, members.stride);
    EXPECT_EQ(same.active, members.active);
    EXPECT_EQ(same.count, members.count);
  }
}

// An idle member is skipped whichever end a step begins at, and no other; products of the library lie in between.
TEST(CudaMembers, AreTakenFromEitherEnd) {
  SKIP_WITHOUT_GPU();
  const auto build = [](Graph& graph, DType dtype) {
    const Wire x = graph.parameter("x", {{33, 24}, dtype}), w = graph.parameter("w", {{24, 24}, dtype});
    const Wire y = tanh(matmul_rows(sin(cos(x)), w));
    test::with_gradients(graph, sin(exp(matmul_rows(square(y), w)) * y));
  };
  for (const int idle : {-1, 0, 1, 4}) {
    EXPECT_EQ(test::disagreement({.build = build, .members = 5, .inactive = idle}), "") << idle;
  }
}

}  // namespace
}  // namespace norma
