// Ops of images and graphs on the GPU against the CPU, in shapes that take every way their kernels have.
#include "backends/examples.h"
#include "cuda/agreement.h"
#include "cuda/gradients.h"
#include "norma/norms/channel.h"
#include "norma/ops/activation.h"
#include "norma/ops/convolution.h"
#include "norma/ops/matmul.h"
#include "norma/ops/modulate.h"
#include "norma/ops/pooling.h"
#include "norma/ops/upsample.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

using test::rounded;
using test::with_gradients;

struct Convolved {
  std::int64_t batch, height, width, in, out, kernel;
  ConvolutionOptions options = {};

  std::string name() const {
    return fmt::format("{}x{}x{}x{} to {}, {}x{} stride {} padding {} dilation {} groups {}", batch, height, width, in,
                       out, kernel, kernel, options.stride, options.padding, options.dilation, options.groups);
  }
  test::Run run(int members, int inactive = -1) const {
    return {.build =
                [*this](Graph& graph, DType dtype) {
                  const Wire x = graph.parameter("x", {{batch, height, width, in}, dtype});
                  const Wire w = graph.parameter("w", {{kernel, kernel, in / options.groups, out}, dtype});
                  with_gradients(graph, conv2d(x, w, options));
                },
            .members = members,
            .inactive = inactive};
  }
};

std::vector<Convolved> convolutions() {
  return {{2, 9, 7, 16, 16, 3, {.padding = 1}},
          {3, 8, 8, 32, 32, 3, {.padding = 1}},
          {2, 11, 6, 64, 64, 3, {.padding = 1}},
          {2, 6, 7, 64, 136, 3, {.padding = 1}},
          {2, 8, 8, 128, 256, 3, {.stride = 2, .padding = 1}},
          {5, 32, 32, 3, 16, 3, {.padding = 1}},
          {3, 9, 10, 16, 32, 1, {.stride = 2}},
          {3, 9, 10, 32, 64, 3, {.stride = 2, .padding = 1}},
          {2, 21, 19, 1, 8, 7, {.stride = 2, .padding = 3}},
          {2, 12, 12, 24, 40, 3, {.padding = 2, .dilation = 2}},
          {2, 12, 11, 5, 7, 3, {.padding = 1}},
          {2, 16, 16, 8, 24, 4, {.stride = 4}},
          {3, 7, 9, 32, 48, 3, {.padding = 1, .groups = 2}},
          {2, 9, 9, 24, 24, 3, {.stride = 2, .padding = 1, .groups = 24}},
          {2, 8, 7, 12, 24, 3, {.padding = 1, .groups = 6}},
          {24, 16, 16, 16, 16, 3, {.padding = 1}},
          {3, 32, 32, 16, 16, 3, {.padding = 1}},
          {70, 16, 16, 32, 32, 3, {.padding = 1}},
          {2, 64, 64, 32, 32, 3, {.padding = 1}},
          {2, 32, 32, 64, 64, 3, {.padding = 1}},
          {3, 16, 16, 64, 128, 3, {.padding = 1}},
          {8, 8, 8, 128, 64, 3, {.padding = 1}},
          {16, 4, 4, 64, 64, 3, {.padding = 1}},
          {5, 12, 10, 3, 64, 3, {.padding = 1}},
          {3, 8, 8, 3, 96, 4, {.stride = 4}},
          {1, 1, 1, 8, 8, 1, {}}};
}

// Needs no GPU: what has no kernel there becomes its reference, and nothing is left over.
TEST(CudaSupport, EveryOpOfTheCpuCanBePlanned) {
  for (const test::Example& example : test::cpu_examples()) {
    Graph graph;
    const Wire y = example(graph, DType::f32);
    std::string names;
    for (const Node& node : graph.nodes()) names += std::string(node.op->name()) + " ";
    if (names == "cast ") continue;  // to f64, which stays on the CPU
    graph.output("result", y);
    try {
      const Wires wanted = graph.parameters();
      const Wires gradients = pull_back(Wires{y}, Wires{graph.input("dy", y.type())}, wanted);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (gradients[i]) graph.output("d/" + wanted[i].name(), gradients[i]);
      }
    } catch (const Error&) {
      // The op has no derivative.
    }
    EXPECT_NO_THROW(compile(graph, cuda_backend())) << names;
  }
}

TEST(CudaConvolution, AgreesWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const Convolved& one : convolutions()) {
    const test::Run run = one.run(3, 1);
    try {
      EXPECT_EQ(test::disagreement(run), "") << one.name();
    } catch (const Error& error) {
      ADD_FAILURE() << one.name() << ": " << error.what();
    }
  }
}

TEST(CudaConvolution, InLowerPrecision) {
  SKIP_WITHOUT_GPU();
  for (const Convolved& one : convolutions()) {
    try {
      EXPECT_EQ(rounded(one.run(2), Precision::bf16, 0x1p-7), "") << one.name();
      EXPECT_EQ(rounded(one.run(2), Precision::tf32, 0x1p-10), "") << one.name();
    } catch (const Error& error) {
      ADD_FAILURE() << one.name() << ": " << error.what();
    }
  }
}

// Many channels, of one member and of several.
TEST(CudaConvolution, OfOneMember) {
  SKIP_WITHOUT_GPU();
  const std::vector<Convolved> many = {{3, 9, 7, 64, 64, 3, {.padding = 1}},
                                       {2, 8, 8, 128, 256, 3, {.stride = 2, .padding = 1}},
                                       {2, 8, 6, 256, 64, 1, {}},
                                       {2, 8, 8, 64, 128, 1, {.stride = 2}},
                                       {2, 12, 12, 64, 72, 3, {.padding = 2, .dilation = 2}},
                                       {2, 12, 12, 96, 64, 5, {.padding = 2}},
                                       {1, 8, 8, 64, 64, 3, {.padding = 1}},
                                       {3, 7, 9, 64, 72, 3, {.padding = 1}},
                                       {2, 32, 32, 64, 64, 3, {.padding = 1}},
                                       {2, 8, 38, 64, 64, 3, {.padding = 1}},
                                       {3, 5, 33, 64, 64, 3, {.padding = 1}},
                                       {4, 4, 4, 256, 192, 3, {.padding = 1}},
                                       {3, 6, 10, 64, 264, 3, {.stride = 2, .padding = 1}},
                                       {4, 8, 8, 72, 128, 1, {.stride = 2}}};
  for (const Convolved& one : many) {
    EXPECT_EQ(rounded(one.run(1), Precision::bf16, 0x1p-7), "") << one.name();
    EXPECT_EQ(rounded(one.run(3), Precision::bf16, 0x1p-7), "") << one.name();
  }
}

// Blocks of a card of 132 multiprocessors walk over several tiles. Large for the CPU: the truth is the GPU's own f32.
TEST(CudaConvolution, OfManyTiles) {
  SKIP_WITHOUT_GPU();
  const std::vector<std::pair<int, Convolved>> many = {{3, {15, 32, 32, 64, 64, 3, {.padding = 1}}},
                                                       {33, {33, 8, 8, 64, 64, 3, {.padding = 1}}},
                                                       {3, {60, 16, 16, 128, 64, 3, {.padding = 1}}},
                                                       {5, {96, 8, 8, 256, 256, 3, {.padding = 1}}},
                                                       {5, {64, 16, 16, 64, 128, 3, {.stride = 2, .padding = 1}}},
                                                       {5, {64, 16, 16, 64, 128, 1, {.stride = 2}}}};
  for (const auto& [members, one] : many) {
    const test::Run run = one.run(members, members / 2);
    EXPECT_EQ(rounded(run, Precision::bf16, 0x1p-7, test::run_on(cuda_backend(), DType::f32, run)), "") << one.name();
  }
}

TEST(CudaConvolution, TwoRunsGiveTheSameBits) {
  SKIP_WITHOUT_GPU();
  const Convolved one{24, 16, 16, 16, 16, 3, {.padding = 1}};
  const auto once = test::run_on(cuda_backend(), DType::f32, one.run(2)),
             again = test::run_on(cuda_backend(), DType::f32, one.run(2));
  for (const auto& [name, values] : once[1]) EXPECT_EQ(test::distance(values, again[1].at(name)), 0) << name;
}

// The same in bf16, where the copy engine gathers and parts of a sum over pixels are added.
TEST(CudaConvolution, TwoRunsGiveTheSameBitsInLowerPrecision) {
  SKIP_WITHOUT_GPU();
  for (const Convolved& one : {Convolved{8, 32, 32, 64, 64, 3, {.padding = 1}},
                               Convolved{16, 8, 8, 128, 256, 3, {.stride = 2, .padding = 1}}}) {
    const auto run = [&] {
      Graph graph;
      one.run(2).build(graph, DType::f32);
      const auto session = make_session(compile(graph, cuda_backend(), {.narrow = true}), {.members = 2});
      for (int member = 0; member < 2; ++member)
        test::stage_start(*session, member, static_cast<std::uint64_t>(member + 1), 2);
      session->run();
      return test::results_of(*session, 1);
    };
    const auto once = run(), again = run();
    for (const auto& [name, values] : once) EXPECT_EQ(test::distance(values, again.at(name)), 0) << one.name() << name;
  }
}

TEST(CudaPooling, AgreesWithTheCpu) {
  SKIP_WITHOUT_GPU();
  const auto pooled = [](const Shape& image, auto pool) {
    return test::Run{.build =
                         [=](Graph& graph, DType dtype) {
                           with_gradients(graph, pool(graph.parameter("x", {image, dtype})));
                         },
                     .members = 3,
                     .inactive = 0};
  };
  const std::vector<PoolingOptions> windows = {
      {}, {.size = 3, .stride = 2, .padding = 1}, {.size = 3, .stride = 1, .padding = 1}, {.size = 2, .stride = 3}};
  for (const PoolingOptions& one : windows) {
    for (const Shape& image : {Shape{3, 8, 8, 6}, Shape{2, 13, 11, 40}, Shape{1, 3, 4, 1}}) {
      const test::Run run = pooled(image, [=](Wire x) { return max_pool(x, one); });
      EXPECT_EQ(test::disagreement(run), "") << image.str() << " " << one.size << " " << one.stride;
    }
  }
  EXPECT_EQ(test::disagreement(pooled({3, 8, 4, 6}, [](Wire x) { return average_pool(x, 2); })), "");
  EXPECT_EQ(test::disagreement(pooled({5, 7, 9, 64}, [](Wire x) { return global_average_pool(x); })), "");
}

TEST(CudaUpsample, AgreesWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t factor : {2, 3}) {
    for (const Shape& image : {Shape{3, 4, 5, 16}, Shape{2, 3, 2, 5}, Shape{1, 1, 1, 1}}) {
      const auto build = [=](Graph& graph, DType dtype) {
        with_gradients(graph, upsample(graph.parameter("x", {image, dtype}), factor));
      };
      EXPECT_EQ(test::disagreement({.build = build, .members = 3, .inactive = 1}), "") << image.str() << " " << factor;
    }
  }
}

TEST(CudaModulate, AgreesWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const Shape& x : {Shape{3, 20, 16}, Shape{2, 7, 13}, Shape{40, 64, 64}, Shape{4, 1, 24}, Shape{2, 5, 4, 520}}) {
    const Type line{{x[0], x.channels()}, DType::f32};
    const auto build = [=](Graph& graph, DType dtype) {
      with_gradients(graph, modulate(graph.parameter("x", {x, dtype}), graph.parameter("by", {line.shape, dtype}),
                                     graph.parameter("shift", {line.shape, dtype})));
    };
    EXPECT_EQ(test::disagreement({.build = build, .members = 3, .inactive = 0}), "") << x.str();
  }
}

// Between products, which write and read bf16.
TEST(CudaModulate, InLowerPrecision) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {48, 12}) {
    const auto build = [=](Graph& graph, DType dtype) {
      const Wire w = graph.parameter("w", {{width, width}, dtype}), v = graph.parameter("v", {{width, width}, dtype});
      const Wire condition = matmul_rows(graph.parameter("c", {{6, width}, dtype}), v);
      const Wire x = reshape(matmul_rows(graph.parameter("x", {{60, width}, dtype}), w), {6, 10, width});
      const Wire y = reshape(modulate(x, condition, condition), {6, 2, 5, width});
      const Wire large = reshape(upsample(y), {240, width});
      with_gradients(graph, matmul_rows(large, graph.parameter("u", {{width, width}, dtype})));
    };
    EXPECT_EQ(rounded({.build = build, .members = 2}, Precision::bf16, 0.03), "") << width;
  }
}

// Norms over the batch, of samples, and with running statistics; then their relu, and what relu is of a sum.
Wire channel_normed(Graph& graph, Wire x, const std::string& kind) {
  const Type channels{{x.shape().channels()}, x.dtype()};
  const Wire gain = graph.parameter("gain", channels), bias = graph.parameter("bias", channels);
  if (kind == "instance") return instance_norm(x, gain, bias);
  if (kind == "group") return group_norm(x, 4, gain, bias);
  const RunningStatistics running{graph.state("mean", channels), graph.state("variance", channels)};
  return kind == "batch" ? batch_norm(x, gain, bias, running) : batch_norm_eval(x, gain, bias, running);
}

TEST(CudaChannelNorms, AgreeWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const Shape& shape :
       {Shape{3, 20, 16}, Shape{2, 7, 12}, Shape{40, 64, 64}, Shape{4, 1030, 24}, Shape{2, 5, 520}}) {
    for (const std::string kind : {"batch", "running", "instance", "group"}) {
      for (const std::string then : {"", "relu", "added", "added relu"}) {
        const auto build = [&](Graph& graph, DType dtype) {
          Wire y = channel_normed(graph, graph.parameter("x", {shape, dtype}), kind);
          if (then.starts_with("added")) y = y + graph.parameter("skip", {shape, dtype});
          with_gradients(graph, then.ends_with("relu") ? activate(y, Activation::relu) : y);
        };
        const std::string what = fmt::format("{} {} {}", shape.str(), kind, then);
        for (const bool fuse : {true, false}) {
          const test::Run run{.build = build, .fuse = fuse, .members = 3, .inactive = 1};
          EXPECT_EQ(test::disagreement(run), "") << what << (fuse ? " fused" : "");
        }
      }
    }
  }
}

// Between convolutions, which write and read bf16. What is nearly 0 may round to the other side of it, and what is
// nearly equal to equal: where that decides who gets a gradient, some elements are wholly wrong.
TEST(CudaChannelNorms, InLowerPrecision) {
  SKIP_WITHOUT_GPU();
  for (const std::string kind : {"batch", "running", "instance", "group"}) {
    for (const std::string then : {"", "relu", "added", "added relu", "pool"}) {
      for (const std::int64_t width : {16, 12}) {
        const auto build = [&](Graph& graph, DType dtype) {
          const Shape image{8, 12, 10, width}, stream{8, 120, width};
          const Wire w = graph.parameter("w", {{1, 1, width, width}, dtype});
          const Wire x = conv2d(graph.parameter("x", {image, dtype}), w);
          Wire y = channel_normed(graph, reshape(x, stream), kind);
          if (then.starts_with("added")) y = y + reshape(x, stream);
          if (then.ends_with("relu")) y = activate(y, Activation::relu);
          y = reshape(y, image);
          if (then == "pool") y = max_pool(y, {.size = 3, .stride = 2, .padding = 1});
          with_gradients(graph, conv2d(y, graph.parameter("v", {{1, 1, width, width}, dtype})));
        };
        const double most = then.ends_with("relu") || then == "pool" ? 0.15 : 0.03;
        EXPECT_EQ(rounded({.build = build, .members = 2}, Precision::bf16, most), "") << kind << " " << then;
      }
    }
  }
}

}  // namespace
}  // namespace norma
