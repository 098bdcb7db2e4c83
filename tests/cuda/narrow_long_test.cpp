// Gradients of attention over long sequences in mixed precision, of heads so many that a block has one and computes
// probabilities once. Against the CPU in f64.
#include <cmath>
#include <limits>

#include "cuda/gradients.h"
#include "norma/graph/differentiate.h"
#include "norma/ops/attention.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"

namespace norma {
namespace {

constexpr std::int64_t kLongWidth = 64;

// Context of some heads, and the gradient of the sum of its squares.
void with_long_attention(Graph& g, DType t, std::int64_t batch, std::int64_t time, int heads, Mask mask, bool padded) {
  const Wire qkv = g.parameter("qkv", {{batch, time, 3 * heads * kLongWidth}, t});
  const Wire lengths = padded ? g.input("lengths", {{batch}, DType::i32}) : Wire();
  const Wire context = attention_packed(qkv, {.heads = heads, .mask = mask}, lengths);
  const Wires wanted = {qkv};
  g.output("d/qkv", differentiate(sum_all(square(context)), wanted)[0]);
}

// Passes over keys that end with one tile, two and three, parts of tiles at the end; members of which one is idle.
TEST(CudaNarrowLong, GradientsOfAttention) {
  SKIP_WITHOUT_GPU();
  struct Size {
    std::int64_t batch, time;
    int heads, members = 1;
    bool padded = false;
  };
  for (const Size size : std::vector<Size>{{32, 129, 4},
                                           {31, 192, 4},
                                           {16, 257, 8},
                                           {11, 300, 12},
                                           {32, 384, 4},
                                           {30, 450, 4},
                                           {11, 1000, 9},
                                           {20, 300, 4, 3},
                                           {32, 300, 4, 1, true}}) {
    for (const Mask mask : {Mask::causal, Mask::full}) {
      const auto build = [&](Graph& g, DType t) {
        with_long_attention(g, t, size.batch, size.time, size.heads, mask, size.padded);
      };
      const test::Run run{
          .build = build, .below = size.time + 1, .members = size.members, .inactive = size.members > 1 ? 1 : -1};
      EXPECT_EQ(test::rounded(run, Precision::bf16, 8 * 0x1p-8), "")
          << size.batch << " times " << size.time << " steps, " << name_of(mask) << (size.padded ? ", padded" : "");
    }
  }
}

// More queries than keys and the other way round.
TEST(CudaNarrowLong, GradientsOfAttentionToOthers) {
  SKIP_WITHOUT_GPU();
  for (const auto& [queries, keys] : {std::pair<std::int64_t, std::int64_t>{70, 333}, {500, 40}, {1, 200}}) {
    const auto build = [&](Graph& g, DType t) {
      const Wire q = g.parameter("q", {{33, queries, 4 * kLongWidth}, t});
      const Wire k = g.parameter("k", {{33, keys, 4 * kLongWidth}, t}),
                 v = g.parameter("v", {{33, keys, 4 * kLongWidth}, t});
      const Wires wanted = {q, k, v};
      const Wires found = differentiate(sum_all(square(attention(q, k, v, {.heads = 4, .mask = Mask::full}))), wanted);
      g.output("d/q", found[0]);
      g.output("d/k", found[1]);
      g.output("d/v", found[2]);
    };
    EXPECT_EQ(test::rounded({.build = build}, Precision::bf16, 8 * 0x1p-8), "") << queries << " to " << keys;
  }
}

// The gradient by qkv of two heads of 66 samples.
std::vector<double> long_gradient(const Backend& backend, DType dtype, std::int64_t time, Mask mask,
                                  std::int64_t poisoned) {
  Graph graph;
  with_long_attention(graph, dtype, 66, time, 2, mask, false);
  const auto session = make_session(compile(graph, backend, {.narrow = dtype == DType::f32}), {.members = 1});
  const Handle qkv = session->handle("qkv");
  std::vector<double> values = test::start_of("qkv", qkv.type(), 1, 1);
  if (poisoned >= 0) values[static_cast<std::size_t>(poisoned)] = std::nan("");
  session->stage_numbers(qkv, 0, values);
  session->run();
  return session->numbers("d/qkv", 0);
}

TEST(CudaNarrowLong, TwoRunsGiveTheSameBits) {
  SKIP_WITHOUT_GPU();
  for (const Mask mask : {Mask::causal, Mask::full}) {
    const std::vector<double> once = long_gradient(cuda_backend(), DType::f32, 700, mask, -1);
    for (int again = 0; again < 3; ++again) {
      EXPECT_EQ(test::distance(once, long_gradient(cuda_backend(), DType::f32, 700, mask, -1)), 0) << name_of(mask);
    }
  }
}

// What is not seen does not matter, even where it is NaN, although products of whole tiles take 0 times it.
TEST(CudaNarrowLong, NaNIsWhereItIsSeen) {
  SKIP_WITHOUT_GPU();
  constexpr std::int64_t kTime = 200;
  for (const std::int64_t row : {3 * kTime + 5, 2 * kTime + 130, 65 * kTime + 199}) {
    for (const std::int64_t part : {0, 1, 2}) {  // queries, keys, values
      const std::int64_t poisoned = (row * 3 + part) * 2 * kLongWidth + 7;
      const std::vector<double> truth = long_gradient(cpu_backend(), DType::f64, kTime, Mask::causal, poisoned);
      const std::vector<double> found = long_gradient(cuda_backend(), DType::f32, kTime, Mask::causal, poisoned);
      test::expect_nan_where_it_is(truth, found, 8 * 0x1p-8, fmt::format("row {}, part {}", row, part));
    }
  }
}

}  // namespace
}  // namespace norma
