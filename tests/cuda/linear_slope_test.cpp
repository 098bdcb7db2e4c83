// A hidden layer made again together with the gradient through its activation: two products of each tile in one kernel.
#include "norma/ops/linear_slope.h"

#include "cuda/gradients.h"
#include "norma/ops/linear.h"
#include "norma/ops/matmul_slope.h"
#include "norma/train/step.h"

namespace norma {
namespace {

struct Sizes {
  std::int64_t rows, columns, made_depth, gradient_depth;
};
// Parts of tiles in every direction, one step of the ring and many, more tiles than blocks, and what our own kernels
// refuse.
std::vector<Sizes> awkward_sizes() {
  return {{1, 8, 8, 8},        {128, 128, 64, 64},     {129, 136, 72, 8},    {300, 264, 8, 200},
          {5, 1024, 256, 256}, {4097, 1000, 264, 128}, {9000, 520, 64, 328}, {33, 20, 12, 10}};
}

struct Layer {
  Wire dy, v, x, w, b;
  Layer(Graph& g, DType t, const Sizes& s, Transpose turned)
      : dy(g.input("dy", {{s.rows, s.gradient_depth}, t})),
        v(g.input(
            "v",
            {turned == Transpose::yes ? Shape{s.columns, s.gradient_depth} : Shape{s.gradient_depth, s.columns}, t})),
        x(g.input("x", {{s.rows, s.made_depth}, t})),
        w(g.input("w", {{s.made_depth, s.columns}, t}) * (1 / std::sqrt(static_cast<double>(s.made_depth)))),
        b(g.input("b", {{s.columns}, t})) {}
};

TEST(CudaLinearSlope, AgreesWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const Sizes& sizes : awkward_sizes()) {
    for (const Activation f : {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
      for (const Transpose turned : {Transpose::yes, Transpose::no}) {
        if (turned == Transpose::no && f != Activation::gelu_tanh) continue;
        const bool bias = f != Activation::silu;
        const auto build = [&](Graph& g, DType t) {
          const Layer layer(g, t, sizes, turned);
          const Wires both = linear_slope(layer.dy, layer.v, layer.x, layer.w, bias ? layer.b : Wire(), f, turned);
          g.output("dz", both[0]);
          g.output("y", both[1]);
        };
        const test::Run run{.build = build, .members = 3, .inactive = 1};
        const std::string what = fmt::format("{} x {} of {} and {}, {}", sizes.rows, sizes.columns, sizes.made_depth,
                                             sizes.gradient_depth, name_of(f));
        // Where relu passes is decided by z, which is rounded before: the gradient of a few elements differs wholly.
        const double narrow = f == Activation::relu ? 0.1 : 0x1p-6;
        EXPECT_EQ(test::rounded(run, Precision::bf16, narrow), "") << what;
        EXPECT_EQ(test::rounded(run, Precision::f32, f == Activation::relu ? 1e-3 : 2e-5), "") << what;
      }
    }
  }
}

// The layer as the forward pass makes it, and the product with its derivative: the same sums in the same order.
TEST(CudaLinearSlope, HasTheBitsOfTheTwoApart) {
  SKIP_WITHOUT_GPU();
  for (const Sizes& sizes : awkward_sizes()) {
    for (const Activation f : {Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
      const auto results = [&](bool together) {
        Graph g;
        const Layer layer(g, DType::f32, sizes, Transpose::yes);
        if (together) {
          const Wires both = linear_slope(layer.dy, layer.v, layer.x, layer.w, layer.b, f, Transpose::yes);
          g.output("dz", both[0]);
          g.output("y", both[1]);
        } else {
          const Wire z = linear(layer.x, layer.w, layer.b);
          g.output("y", activate(z, f));
          g.output("dz", matmul_slope(layer.dy, layer.v, z, f, Transpose::yes));
        }
        const auto session = make_session(compile(g, cuda_backend(), {.narrow = true}), {.members = 2});
        for (int member = 0; member < 2; ++member)
          test::stage_start(*session, member, static_cast<std::uint64_t>(member + 1), 2);
        session->run();
        return test::results_of(*session, 1);
      };
      EXPECT_EQ(results(true), results(false)) << sizes.rows << " x " << sizes.columns << ", " << name_of(f);
      EXPECT_EQ(results(true), results(true)) << sizes.rows << " x " << sizes.columns << ", " << name_of(f);
    }
  }
}

}  // namespace
}  // namespace norma
