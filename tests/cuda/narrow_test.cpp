// Kernels that only mixed precision, or long rows and sequences, reach: against the CPU in f64; and what is computed
// again against what is kept.
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "cuda/agreement.h"
#include "norma/graph/differentiate.h"
#include "norma/norms/row.h"
#include "norma/ops/activation.h"
#include "norma/ops/attention.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/linear.h"
#include "norma/ops/reduce.h"
#include "norma/train/step.h"

namespace norma {
namespace {

using Build = std::function<Wire(Graph&, DType)>;  // a loss

test::Tensors gradients_by_parameters(const Build& build, const Backend& backend, DType dtype, std::int64_t below,
                                      CompileOptions options = {}, int members = 2) {
  Graph graph;
  const Wire loss = build(graph, dtype);
  const Wires parameters = graph.parameters();
  const Wires gradients = differentiate(loss, parameters);
  graph.output("loss", loss);
  for (std::size_t i = 0; i < parameters.size(); ++i) graph.output("d/" + parameters[i].name(), gradients[i]);
  const auto session = make_session(compile(graph, backend, options), {.members = members, .threads = 1});
  for (int member = 0; member < members; ++member) test::stage_start(*session, member, 3, below);
  session->run();
  test::Tensors results = test::results_of(*session, members - 1);
  std::erase_if(results, [](const auto& one) { return one.first != "loss" && !one.first.starts_with("d/"); });
  return results;
}

double length_of_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double wrong = 0, whole = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    wrong += (a[i] - b[i]) * (a[i] - b[i]);
    whole += a[i] * a[i];
  }
  return std::sqrt(wrong / whole);
}

// In f32 and in bf16, where tensors on the way are rounded to 8 bits: a few roundings are allowed, and a term that is
// missing or counted twice is an error of the order of one.
void expect_near_the_cpu(const Build& build, std::int64_t below, const std::string& what, int members = 2) {
  const test::Tensors truth = gradients_by_parameters(build, cpu_backend(), DType::f64, below);
  for (const bool narrow : {false, true}) {
    const test::Tensors gpu =
        gradients_by_parameters(build, cuda_backend(), DType::f32, below, {.narrow = narrow}, members);
    for (const auto& [name, values] : truth) {
      ASSERT_GT(test::largest(values), 0) << what << ": " << name;
      EXPECT_LT(length_of_difference(values, gpu.at(name)), narrow ? 8 * 0x1p-8 : 2e-5)
          << what << (narrow ? " bf16: " : " f32: ") << name;
    }
  }
}

// Classes of rows that a block holds in shared memory in both widths, in one of them, and that are too long or do not
// consist of whole 16 bytes; ignored targets among them.
TEST(CudaNarrow, LossesOfLongRows) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t classes : {2048, 4096, 5000, 9992, 40000, 60000}) {
    for (const double smoothing : {0.0, 0.1}) {
      expect_near_the_cpu(
          [&](Graph& g, DType t) {
            const Wire x = g.parameter("x", {{7, 16}, t});
            return linear_cross_entropy(x * 0.3, g.parameter("w", {{16, classes}, t}),
                                        g.input("classes", {{7}, DType::i32}), g.fill({{1}, t}, smoothing),
                                        {.ignore = 1});
          },
          3, fmt::format("{} classes, smoothing {}", classes, smoothing));
    }
  }
}

// Sequences of several tiles: the backward pass reads the context.
TEST(CudaNarrow, GradientsOfAttentionWithItsContext) {
  SKIP_WITHOUT_GPU();
  for (const auto& [time, width] :
       {std::pair<std::int64_t, std::int64_t>{200, 64}, {130, 48}, {128, 64}, {96, 32}, {20, 16}}) {
    for (const Mask mask : {Mask::causal, Mask::full}) {
      expect_near_the_cpu(
          [&](Graph& g, DType t) {
            const Wire qkv = g.parameter("qkv", {{2, time, 6 * width}, t});
            const Wire context = attention_packed(qkv, {.heads = 2, .mask = mask});
            return sum_all(square(context) * g.input("weight", context.type())) + sum_all(square(context));
          },
          2, fmt::format("{} steps, heads of {}, {}", time, width, name_of(mask)));
    }
  }
}

// Gradients of biases of several layers, one launch for some of them.
TEST(CudaNarrow, GradientsOfManyBiases) {
  SKIP_WITHOUT_GPU();
  for (const auto& [rows, width] : {std::pair<std::int64_t, std::int64_t>{700, 72}, {129, 33}, {3, 8}}) {
    expect_near_the_cpu(
        [&](Graph& g, DType t) {
          Wire x = g.parameter("x", {{rows, width}, t});
          for (int layer = 0; layer < 11; ++layer) {
            const std::string name = std::to_string(layer);
            const std::int64_t from = layer % 2 == 0 ? width : 2 * width, to = layer % 2 == 0 ? 2 * width : width;
            const Wire w = g.parameter("w" + name, {{from, to}, t}) * (0.7 / std::sqrt(static_cast<double>(from)));
            x = linear(x, w, g.parameter("b" + name, {{to}, t}));
          }
          return sum_all(square(x));
        },
        2, fmt::format("{} rows of {}", rows, width));
  }
}

TEST(CudaNarrow, Activations) {
  SKIP_WITHOUT_GPU();
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    expect_near_the_cpu(
        [&](Graph& g, DType t) {
          const Wire x = g.parameter("x", {{33, 24}, t});
          const Wire y = linear(x, g.parameter("w", {{24, 40}, t}), g.parameter("b", {{40}, t}), activation);
          return sum_all(square(y));
        },
        2, std::string(name_of(activation)));
  }
}

// Tiles enough for products of our own, with a part of a tile at the end of rows, columns and depth; activations whose
// value and slope pass through shared memory in such tiles too.
TEST(CudaNarrow, ProductsOfManyTiles) {
  SKIP_WITHOUT_GPU();
  for (const auto& [rows, from, to] :
       {std::array<std::int64_t, 3>{9001, 72, 480}, {17000, 128, 248}, {8500, 264, 504}, {34000, 24, 120}}) {
    for (const Activation activation : {Activation::none, Activation::gelu_tanh}) {
      expect_near_the_cpu(
          [&](Graph& g, DType t) {
            const double scale = 1 / std::sqrt(static_cast<double>(from));
            const Wire x = g.parameter("x", {{rows, from}, t});
            const Wire y =
                linear(x, g.parameter("w", {{from, to}, t}) * scale, g.parameter("b", {{to}, t}), activation);
            const Wire z = linear(y, g.parameter("v", {{to, 8}, t}) * scale, g.parameter("c", {{8}, t}));
            return mean_all(square(z));
          },
          2, fmt::format("{} rows of {} to {}, {}", rows, from, to, name_of(activation)));
    }
  }
}

// So many members that a norm's backward pass takes more rows to a block than for one: lines are left that nothing is
// summed into, and the last block has fewer rows.
TEST(CudaNarrow, NormsOfManyMembers) {
  SKIP_WITHOUT_GPU();
  for (const auto& [rows, width, members] :
       {std::array<std::int64_t, 3>{301, 40, 140}, {700, 128, 30}, {90, 600, 20}}) {
    expect_near_the_cpu(
        [&](Graph& g, DType t) {
          Wire x = g.parameter("x", {{rows, width}, t});
          for (int layer = 0; layer < 3; ++layer) {
            const std::string name = std::to_string(layer);
            const Wire y =
                layer_norm(x, g.parameter("gain" + name, {{width}, t}), g.parameter("b" + name, {{width}, t}));
            const Wire w = g.parameter("w" + name, {{width, width}, t}) * (0.7 / std::sqrt(static_cast<double>(width)));
            x = x + linear(y, w, g.parameter("c" + name, {{width}, t}));
          }
          return sum_all(square(rms_norm(x, g.parameter("gain", {{width}, t})) * g.input("weight", x.type())));
        },
        2, fmt::format("{} rows of {}", rows, width), static_cast<int>(members));
  }
}

struct ValueAndSlope {
  double value, slope;
};
// From erfc, exp and tanh alone: what a tail of 1e-14 is matters here.
ValueAndSlope exactly(Activation activation, double x) {
  const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
  switch (activation) {
    case Activation::gelu: {
      const double share = 0.5 * std::erfc(-x / std::numbers::sqrt2);
      return {x * share, share + x * std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2};
    }
    case Activation::gelu_tanh: {
      const double c = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi, s = sigmoid(c * (x + 0.044715 * x * x * x));
      return {x * s, s + x * s * (1 - s) * c * (1 + 3 * 0.044715 * x * x)};
    }
    case Activation::silu: return {x * sigmoid(x), sigmoid(x) * (1 + x * (1 - sigmoid(x)))};
    default: return {std::max(x, 0.0), x > 0 ? 1.0 : 0.0};
  }
}

// Every value of bf16 from -12 to 12 that is not far below what a network holds, through a product by the identity: the
// value to one rounding of the result, the slope (which has zeros) to one rounding and what its terms are allowed.
TEST(CudaNarrow, EveryValueOfActivations) {
  SKIP_WITHOUT_GPU();
  constexpr std::int64_t kWidth = 8;
  std::vector<double> points, identity(kWidth * kWidth);
  for (std::size_t i = 0; i < kWidth; ++i) identity[i * kWidth + i] = 1;
  for (std::uint32_t bits = 0; bits <= 0x4140; ++bits) {
    const auto value = static_cast<double>(std::bit_cast<float>(bits << 16));
    if (value < 1e-30) continue;
    points.push_back(value);
    points.push_back(-value);
  }
  points.resize((points.size() + kWidth - 1) / kWidth * kWidth);
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    Graph graph;
    const Wire x = graph.input("x", {{static_cast<std::int64_t>(points.size()) / kWidth, kWidth}, DType::f32});
    const Wire unit = graph.input("unit", {{kWidth, kWidth}, DType::f32}), wrt[] = {x};
    const Wire y = linear(x, unit, Wire(), activation);
    graph.output("y", y);
    graph.output("slope", differentiate(sum_all(y), wrt)[0]);
    const auto session = make_session(compile(graph, cuda_backend(), {.narrow = true}), {.members = 1, .threads = 1});
    session->stage_numbers(session->handle("x"), 0, points);
    session->stage_numbers(session->handle("unit"), 0, identity);
    session->run();
    const std::vector<double> values = session->numbers("y", 0), slopes = session->numbers("slope", 0);
    constexpr double kRounding = 0x1p-8;
    int off = 0, narrow = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto [value, slope] = exactly(activation, points[i]);
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(values[i]));
      narrow += (bits & 0xffff) == 0 ? 1 : 0;
      if (!(std::abs(values[i] - value) <= 1.02 * kRounding * std::abs(value) + 1e-37) && ++off <= 3)
        ADD_FAILURE() << name_of(activation) << " of " << points[i] << ": " << values[i] << ", not " << value;
      if (points[i] != 0 && !(std::abs(slopes[i] - slope) <= kRounding * std::abs(slope) + 4e-5) && ++off <= 3)
        ADD_FAILURE() << name_of(activation) << " slope at " << points[i] << ": " << slopes[i] << ", not " << slope;
    }
    EXPECT_EQ(off, 0) << name_of(activation);
    EXPECT_EQ(narrow, static_cast<int>(points.size())) << name_of(activation) << ": this is about bf16";
  }
}

// Activations inside a product and their derivatives behind one; gradients of several weights and biases in one launch.
TEST(CudaNarrow, FeedForwardLayers) {
  SKIP_WITHOUT_GPU();
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    for (const auto& [rows, width] : {std::pair<std::int64_t, std::int64_t>{300, 136}, {129, 20}, {5, 8}}) {
      expect_near_the_cpu(
          [&](Graph& g, DType t) {
            Wire x = g.parameter("x", {{rows, width}, t});
            for (const std::string layer : {"1", "2"}) {
              const Wire up = g.parameter("u" + layer, {{width, 3 * width}, t});
              const Wire down = g.parameter("v" + layer, {{3 * width, width}, t});
              const double scale = 0.8 / std::sqrt(static_cast<double>(width));
              const Wire hidden = linear(x, up * scale, g.parameter("b" + layer, {{3 * width}, t}), activation);
              x = x + linear(hidden, down * scale, g.parameter("c" + layer, {{width}, t}));
            }
            return sum_all(square(x));
          },
          2, fmt::format("{} rows of {}, {}", rows, width, name_of(activation)));
    }
  }
}

// What is made again is made by the same kernels from the same numbers.
TEST(CudaNarrow, LeanHasTheBitsOfAll) {
  SKIP_WITHOUT_GPU();
  for (const std::string scheme : {"pre", "deepnorm"}) {
    ModelConfig model{.layers = 8, .width = 64, .heads = 2, .vocabulary = 64, .batch = 4, .time = 64};
    model.scheme = scheme;
    std::vector<double> losses[2];
    std::int64_t bytes[2] = {};
    for (const Keep keep : {Keep::all, Keep::lean}) {
      const auto at = static_cast<std::size_t>(keep);
      const TrainingStep step = build_training_step(model, {.keep = keep, .narrow = true, .backend = &cuda_backend()});
      bytes[at] = step.plan->transient_bytes();
      const auto session = make_session(step.plan, {.members = 2});
      for (int member = 0; member < 2; ++member) {
        test::stage_start(*session, member, 3, 64);
        initialise(*session, step.parameters, 1, member);
      }
      for (int i = 0; i < 4; ++i) {
        session->run(Watching::no);
        losses[at].push_back(session->number("loss", 1));
      }
    }
    EXPECT_EQ(losses[0], losses[1]) << scheme;
    EXPECT_NE(losses[0][0], losses[0][3]) << scheme;
    EXPECT_LT(bytes[1], bytes[0]) << scheme;
  }
}

}  // namespace
}  // namespace norma
