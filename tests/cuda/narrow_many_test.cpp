// Kernels that many small things reach in mixed precision: heads of short sequences, rows of few classes. Against the
// CPU in f64.
#include <cmath>
#include <limits>

#include "cuda/gradients.h"
#include "norma/graph/differentiate.h"
#include "norma/ops/attention.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"

namespace norma {
namespace {

// Context of some heads, and the gradient of the sum of its squares.
void with_attention(Graph& g, DType t, std::int64_t batch, std::int64_t time, std::int64_t width, Mask mask,
                    bool padded, int heads = 4) {
  const Wire qkv = g.parameter("qkv", {{batch, time, 3 * heads * width}, t});
  const Wire lengths = padded ? g.input("lengths", {{batch}, DType::i32}) : Wire();
  const Wire context = attention_packed(qkv, {.heads = heads, .mask = mask}, lengths);
  const Wires wanted = {qkv};
  g.output("d/qkv", differentiate(sum_all(square(context)), wanted)[0]);
  g.output("context", context);
}

// Heads of short sequences so many that one block makes all gradients of a head; samples of different lengths.
TEST(CudaNarrowMany, GradientsOfAttention) {
  SKIP_WITHOUT_GPU();
  for (const auto& [time, width] :
       {std::pair<std::int64_t, std::int64_t>{128, 32}, {127, 16}, {100, 24}, {64, 32}, {33, 16}, {1, 32}}) {
    for (const Mask mask : {Mask::causal, Mask::full}) {
      for (const bool padded : {false, true}) {
        const auto build = [&](Graph& g, DType t) { with_attention(g, t, 34, time, width, mask, padded); };
        EXPECT_EQ(test::rounded({.build = build, .below = time + 1, .members = 2}, Precision::bf16, 8 * 0x1p-8), "")
            << time << " steps, heads of " << width << ", " << name_of(mask) << (padded ? ", padded" : "");
      }
    }
  }
}

// Wider heads of short sequences, so few that a block has one, and its warpgroups 64 keys each; one member is idle.
TEST(CudaNarrowMany, GradientsOfFewHeads) {
  SKIP_WITHOUT_GPU();
  struct Size {
    std::int64_t batch;
    int heads;
    std::int64_t time, width;
  };
  for (const Size size : std::vector<Size>{{32, 4, 128, 64},
                                           {1, 1, 128, 64},
                                           {3, 5, 127, 64},
                                           {2, 3, 100, 48},
                                           {5, 2, 96, 40},
                                           {3, 2, 65, 64},
                                           {40, 3, 64, 64},
                                           {3, 4, 64, 40},
                                           {2, 2, 33, 48}}) {
    for (const Mask mask : {Mask::causal, Mask::full}) {
      for (const bool padded : {false, true}) {
        const auto build = [&](Graph& g, DType t) {
          with_attention(g, t, size.batch, size.time, size.width, mask, padded, size.heads);
        };
        const test::Run run{
            .build = build, .below = size.time + 1, .members = 2, .inactive = size.batch % 2 == 0 ? 1 : 0};
        EXPECT_EQ(test::rounded(run, Precision::bf16, 8 * 0x1p-8), "")
            << size.batch << " samples of " << size.time << " steps, " << size.heads << " heads of " << size.width
            << ", " << name_of(mask) << (padded ? ", padded" : "");
      }
    }
  }
}

// What is not seen does not matter, even where it is NaN, although products of whole tiles take 0 times it.
TEST(CudaNarrowMany, NaNIsWhereItIsSeen) {
  SKIP_WITHOUT_GPU();
  constexpr std::int64_t kTime = 128, kWidth = 64;
  for (const std::int64_t row : {5, 63, 70}) {
    for (const std::int64_t part : {0, 1, 2}) {  // queries, keys, values
      const auto gradients = [&](const Backend& backend, DType dtype, bool narrow) {
        Graph graph;
        with_attention(graph, dtype, 1, kTime, kWidth, Mask::causal, false, 2);
        const auto session = make_session(compile(graph, backend, {.narrow = narrow}), {.members = 1, .threads = 1});
        const Handle qkv = session->handle("qkv");
        std::vector<double> values = test::start_of("qkv", qkv.type(), 1, 1);
        values[static_cast<std::size_t>((row * 3 + part) * 2 * kWidth + 7)] = std::nan("");
        session->stage_numbers(qkv, 0, values);
        session->run();
        return session->numbers("d/qkv", 0);
      };
      const std::vector<double> truth = gradients(cpu_backend(), DType::f64, false);
      const std::vector<double> found = gradients(cuda_backend(), DType::f32, true);
      test::expect_nan_where_it_is(truth, found, 8 * 0x1p-8, fmt::format("row {}, part {}", row, part));
    }
  }
}

// So many that a block goes from head to head; one member is idle.
TEST(CudaNarrowMany, Attention) {
  SKIP_WITHOUT_GPU();
  struct Size {
    std::int64_t time, width;
    Mask mask;
  };
  for (const Size size : std::vector<Size>{{128, 32, Mask::causal}, {100, 16, Mask::full}, {60, 24, Mask::causal}}) {
    const auto build = [&](Graph& g, DType t) { with_attention(g, t, 64, size.time, size.width, size.mask, true); };
    const test::Run run{.build = build, .below = size.time + 1, .members = 5, .inactive = 2};
    EXPECT_EQ(test::rounded(run, Precision::bf16, 8 * 0x1p-8), "")
        << size.time << " steps, heads of " << size.width << ", " << name_of(size.mask);
  }
}

// Sequences of several tiles, heads of 64: few heads of many keys, and many heads of three members, one of them idle.
TEST(CudaNarrowMany, LongAttention) {
  SKIP_WITHOUT_GPU();
  struct Size {
    std::int64_t batch, time;
    int members;
  };
  for (const Size size : std::vector<Size>{{1, 1024, 2}, {1, 1000, 2}, {2, 257, 2}, {2, 130, 2}, {20, 300, 3}}) {
    for (const Mask mask : {Mask::causal, Mask::full}) {
      const auto build = [&](Graph& g, DType t) { with_attention(g, t, size.batch, size.time, 64, mask, false); };
      const test::Run run{.build = build, .members = size.members, .inactive = size.members > 2 ? 1 : -1};
      EXPECT_EQ(test::rounded(run, Precision::bf16, 8 * 0x1p-8), "")
          << size.batch << " times " << size.time << " steps, " << name_of(mask);
    }
  }
}

// What the mask hides may be anything: here the last value is infinite, which only the last row may see.
TEST(CudaNarrowMany, HiddenInfinities) {
  SKIP_WITHOUT_GPU();
  constexpr std::int64_t kBatch = 40, kTime = 300, kRow = 12 * 64, kContext = 4 * 64;
  Graph graph;
  const Wire qkv = graph.input("qkv", {{kBatch, kTime, kRow}, DType::f32});
  graph.output("context", attention_packed(qkv, {.heads = 4, .mask = Mask::causal}));
  const auto session = make_session(compile(graph, cuda_backend(), {.narrow = true}), {.members = 1});
  std::vector<double> values(kBatch * kTime * kRow, 1.0);  // a mean of ones
  for (std::int64_t sample = 0; sample < kBatch; sample += 3) {
    const std::int64_t last = ((sample + 1) * kTime - 1) * kRow;
    for (std::int64_t i = 8 * 64; i < kRow; ++i)
      values[static_cast<std::size_t>(last + i)] = std::numeric_limits<double>::infinity();
  }
  session->stage_numbers(session->handle("qkv"), 0, values);
  session->run();
  const std::vector<double> context = session->numbers("context", 0);
  int wrong = 0;
  for (std::size_t i = 0; i < context.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / kContext;
    const bool infinite = row % kTime == kTime - 1 && row / kTime % 3 == 0;
    wrong += infinite ? std::isinf(context[i]) ? 0 : 1 : std::abs(context[i] - 1) < 1e-2 ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
}

// Losses of a projection to few classes, both ways that its weight is stored, in one launch: one tile of rows and
// several for a block, parts of tiles, ignored targets, log-sum-exps, and an idle member.
TEST(CudaNarrowMany, LossesOfFewClasses) {
  SKIP_WITHOUT_GPU();
  struct Size {
    std::int64_t rows, width, classes;
  };
  for (const Size size : std::vector<Size>{{12000, 128, 256},
                                           {2048, 64, 256},
                                           {130, 72, 200},
                                           {100, 128, 72},
                                           {63, 40, 128},
                                           {1, 8, 8},
                                           {70, 128, 264},
                                           {70, 128, 100}}) {
    for (const Transpose stored : {Transpose::yes, Transpose::no}) {
      for (const double smoothing : {0.0, 0.1}) {
        const auto build = [&](Graph& g, DType t) {
          const bool transposed = stored == Transpose::yes;
          const Wire x = g.parameter("x", {{size.rows, size.width}, t});
          const Wire w =
              g.parameter("w", {transposed ? Shape{size.classes, size.width} : Shape{size.width, size.classes}, t});
          const Wire in[] = {x * 0.3, w, g.input("classes", {{size.rows}, DType::i32}), g.fill({{1}, t}, smoothing)};
          const CrossEntropyOptions options{.ignore = size.rows > 1 ? 3 : -100, .weight = stored};
          const Wires out = g.apply(std::make_shared<LinearCrossEntropy>(options), in);
          const Wires gradients = differentiate(out[0], Wires{x, w});
          g.output("loss", out[0]);
          g.output("lse", out[1]);
          g.output("d/x", gradients[0]);
          g.output("d/w", gradients[1]);
        };
        const test::Run run{.build = build, .below = size.classes, .members = 3, .inactive = 1};
        EXPECT_EQ(test::rounded(run, Precision::bf16, 8 * 0x1p-8), "")
            << size.rows << " rows of " << size.width << ", " << size.classes << " classes"
            << (stored == Transpose::yes ? ", transposed" : "") << ", smoothing " << smoothing;
      }
    }
  }
}

}  // namespace
}  // namespace norma
