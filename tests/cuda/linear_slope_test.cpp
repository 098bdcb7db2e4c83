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
// Parts of tiles in every direction, one step of the ring and many, for three members more tiles than an H200 takes at
// once and an odd number of them that fills it by half, and what our own kernels refuse.
std::vector<Sizes> awkward_sizes() {
  return {{1, 8, 8, 8},        {128, 128, 64, 64},  {129, 136, 72, 8},     {300, 264, 8, 200},
          {5, 1024, 256, 256}, {1100, 640, 64, 72}, {2309, 520, 264, 128}, {33, 20, 12, 10}};
}

// Whole numbers from -2 to 2: their products are exact, however they are added up.
Wire whole_numbers(Graph& g, const std::string& name, const Shape& shape, DType t) {
  const RandomStream stream(1, name);
  std::vector<double> wide(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<double>(stream.below(i, 5)) - 2;
  if (t == DType::f64) return g.constant<double>(name, shape, wide);
  return g.constant<float>(name, shape, std::vector<float>(wide.begin(), wide.end()));
}

struct Layer {
  Wire dy, v, x, w, b;
  Layer(Graph& g, DType t, const Sizes& s, Transpose turned, Activation f)
      : dy(g.input("dy", {{s.rows, s.gradient_depth}, t})),
        v(g.input(
            "v",
            {turned == Transpose::yes ? Shape{s.columns, s.gradient_depth} : Shape{s.gradient_depth, s.columns}, t})),
        x(g.input("x", {{s.rows, s.made_depth}, t})),
        w(g.input("w", {{s.made_depth, s.columns}, t}) * (1 / std::sqrt(static_cast<double>(s.made_depth)))),
        b(g.input("b", {{s.columns}, t})) {
    if (f != Activation::relu) return;
    // Where relu passes must not depend on rounding: halves, none of which is 0.
    x = whole_numbers(g, "whole x", {s.rows, s.made_depth}, t);
    w = whole_numbers(g, "whole w", {s.made_depth, s.columns}, t);
    b = g.fill({{s.columns}, t}, 0.5);
  }
};

TEST(CudaLinearSlope, AgreesWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const Sizes& sizes : awkward_sizes()) {
    for (const Activation f : {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
      for (const Transpose turned : {Transpose::yes, Transpose::no}) {
        if (turned == Transpose::no && f != Activation::gelu_tanh) continue;
        const bool bias = f != Activation::silu;
        const auto build = [&](Graph& g, DType t) {
          const Layer layer(g, t, sizes, turned, f);
          const Wires both = linear_slope(layer.dy, layer.v, layer.x, layer.w, bias ? layer.b : Wire(), f, turned);
          g.output("dz", both[0]);
          g.output("y", both[1]);
        };
        const test::Run run{.build = build, .members = 3, .inactive = 1};
        const std::string what = fmt::format("{} x {} of {} and {}, {}", sizes.rows, sizes.columns, sizes.made_depth,
                                             sizes.gradient_depth, name_of(f));
        const std::vector<test::Tensors> truth = test::run_on(cpu_backend(), DType::f64, run);
        EXPECT_EQ(test::rounded(run, Precision::bf16, 0x1p-6, truth), "") << what;
        EXPECT_EQ(test::rounded(run, Precision::f32, 2e-5, truth), "") << what;
      }
    }
  }
}

// The layer as the forward pass makes it, and the product with its derivative: the same sums in the same order.
TEST(CudaLinearSlope, HasTheBitsOfTheTwoApart) {
  SKIP_WITHOUT_GPU();
  std::vector<Sizes> all = awkward_sizes();
  all.push_back({9000, 520, 64, 328});
  for (const Sizes& sizes : all) {
    for (const Activation f : {Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
      const auto results = [&](bool together) {
        Graph g;
        const Layer layer(g, DType::f32, sizes, Transpose::yes, f);
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
