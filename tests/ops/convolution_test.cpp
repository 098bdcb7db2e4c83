// Convolution: gradients of both orders, kernels against the reference, a sum written out by hand, errors, cost.
#include "norma/ops/convolution.h"

#include "check.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

struct ConvolutionCase {
  Shape x, weight;
  ConvolutionOptions options;
};

// Awkward on purpose: one pixel, odd sizes, strides that leave a column unread, groups, depthwise, dilation.
const std::vector<ConvolutionCase> kCases = {
    {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
    {{3, 5, 7, 3}, {3, 3, 3, 5}, {.padding = 1}},
    {{2, 6, 5, 4}, {3, 3, 4, 3}, {.stride = 2, .padding = 1}},
    {{2, 7, 6, 4}, {1, 1, 4, 6}, {.stride = 2}},
    {{2, 5, 4, 6}, {3, 3, 2, 9}, {.padding = 1, .groups = 3}},
    {{3, 6, 6, 5}, {3, 3, 1, 5}, {.stride = 2, .padding = 1, .groups = 5}},
    {{2, 9, 8, 3}, {3, 2, 3, 2}, {.padding = 2, .dilation = 2}},
    {{1, 12, 11, 2}, {7, 7, 2, 3}, {.stride = 2, .padding = 3}},
};

Wire convolved(Graph& g, const ConvolutionCase& c, DType dtype) {
  return conv2d(g.input("x", {c.x, dtype}), g.parameter("w", {c.weight, dtype}), c.options);
}

TEST(Convolution, Gradients) {
  for (const ConvolutionCase& c : kCases) {
    SCOPED_TRACE(Conv2d(c.options).attributes());
    check_gradients([&](Graph& g) { return sum_all(square(convolved(g, c, DType::f64))); }, {"x", "w"},
                    {.tolerance = 1e-6, .most_elements = 20});
  }
}

TEST(Convolution, SecondDerivatives) {
  for (const ConvolutionCase& c : kCases) {
    SCOPED_TRACE(Conv2d(c.options).attributes());
    check_gradients(
        [&](Graph& g) {
          const Wire loss = sum_all(square(square(convolved(g, c, DType::f64))));
          const Wires gradients = differentiate(loss, Wires{g.find("x"), g.find("w")});
          return sum_all(square(gradients[0])) * 1e-3 + sum_all(square(gradients[1])) * 1e-3;
        },
        {"x", "w"}, {.tolerance = 1e-5, .most_elements = 5});
  }
}

// f32 kernels of the three passes against their references in f64.
TEST(Convolution, KernelsEqualTheReference) {
  std::vector<ConvolutionCase> cases = kCases;
  cases.push_back({{17, 9, 9, 16}, {3, 3, 16, 33}, {.padding = 1}});
  cases.push_back({{33, 8, 8, 32}, {3, 3, 32, 32}, {.stride = 2, .padding = 1}});
  // Of 3 x 3 with channels in sixteens: whole tiles, tiles that hang over, other paddings, several blocks.
  cases.push_back({{5, 8, 12, 16}, {3, 3, 16, 32}, {.padding = 1}});
  cases.push_back({{3, 7, 10, 32}, {3, 3, 32, 16}, {.padding = 1}});
  cases.push_back({{2, 14, 13, 16}, {3, 3, 16, 16}, {}});
  cases.push_back({{2, 10, 9, 16}, {3, 3, 16, 16}, {.padding = 2}});
  cases.push_back({{40, 8, 8, 64}, {3, 3, 64, 64}, {.padding = 1}});
  cases.push_back({{5, 16, 16, 3}, {3, 3, 3, 16}, {.padding = 1}});
  for (const ConvolutionCase& c : cases) {
    SCOPED_TRACE(c.x.str() + c.weight.str() + Conv2d(c.options).attributes());
    const auto values = [&](DType dtype) {
      Graph g;
      const Wire y = convolved(g, c, dtype);
      const Wires gradients = differentiate(sum_all(square(y)), Wires{g.find("x"), g.find("w")});
      g.output("y", y);
      g.output("dx", gradients[0]);
      g.output("dw", gradients[1]);
      CpuSession session(test::plain_plan(g), {.threads = 2});
      test::randomise_all(session);
      session.run();
      std::map<std::string, std::vector<double>> all;
      for (const char* name : {"y", "dx", "dw"}) {
        if (dtype == DType::f32) {
          const auto tensor = session.tensor<float>(name);
          all[name].assign(tensor.begin(), tensor.end());
        } else {
          const auto tensor = session.tensor<double>(name);
          all[name].assign(tensor.begin(), tensor.end());
        }
      }
      return all;
    };
    const auto fast = values(DType::f32), exact = values(DType::f64);
    // Sums of so many products of numbers of size 1, and for gradients of y, which is as large as their root.
    const double terms = static_cast<double>(c.weight.elements() / c.weight[3]);
    const double positions = static_cast<double>(c.x.rows());
    // Sums of transformed numbers, some of them times eight, round more than those of the numbers themselves: up to
    // some 4e-5 of the rms, where TF32 has 5e-4.
    const bool winograd = c.weight[0] == 3 && c.options.stride == 1 && c.x[3] % 16 == 0 && c.weight[3] % 16 == 0;
    const double roundings = winograd ? 512 : 32;
    for (const auto& [name, expected] : exact) {
      const double size = name == "y" ? std::sqrt(terms) : name == "dx" ? terms * 3 : std::sqrt(positions * terms) * 3;
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(fast.at(name)[i], expected[i], roundings * epsilon_of(DType::f32) * (size + std::abs(expected[i])))
            << name << " " << i;
    }
  }
}

TEST(Convolution, IsTheSumThatItsFormulaSays) {
  Graph g;
  g.output("y", convolved(g, {{1, 3, 3, 1}, {2, 2, 1, 1}, {.padding = 1}}, DType::f32));
  CpuSession session(test::plain_plan(g));
  const std::span<float> x = session.tensor<float>("x"), w = session.tensor<float>("w");
  for (std::size_t i = 0; i < 9; ++i) x[i] = static_cast<float>(i + 1);
  for (std::size_t i = 0; i < 4; ++i) w[i] = static_cast<float>(std::pow(10, i));
  session.run();
  const std::span<float> y = session.tensor<float>("y");
  const std::vector<float> expected = {1000, 2100, 3200, 300, 4010, 5421, 6532, 603,
                                       7040, 8754, 9865, 906, 70,   87,   98,   9};
  EXPECT_EQ(std::vector<float>(y.begin(), y.end()), expected);
}

// Blocks of images are cut by shape alone.
TEST(Convolution, BitsDoNotDependOnThreads) {
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    Graph g;
    const Wire y = convolved(g, {{19, 9, 9, 16}, {3, 3, 16, 16}, {.padding = 1}}, DType::f32);
    g.output("dw", differentiate(sum_all(square(y)), Wires{g.find("w")})[0]);
    CpuSession session(test::plain_plan(g), {.threads = threads});
    test::randomise_all(session);
    session.run();
    const std::span<float> dw = session.tensor<float>("dw");
    if (first.empty()) first.assign(dw.begin(), dw.end());
    EXPECT_TRUE(std::equal(dw.begin(), dw.end(), first.begin())) << threads;
  }
}

// By hand: every pixel of the small image puts the kernel, times itself, onto the large one.
TEST(TransposedConvolution, PutsTheKernelWhereEachPixelIs) {
  Graph g;
  const Wire x = g.input("x", {{1, 2, 2, 1}, DType::f32}), w = g.parameter("w", {{3, 3, 1, 1}, DType::f32});
  const Wire large = transposed_conv2d(x, w, {.stride = 2, .padding = 1}, 1);
  EXPECT_EQ(large.shape(), (Shape{1, 4, 4, 1}));
  g.output("y", large);
  CpuSession session(test::plain_plan(g));
  session.write<float>("x", std::vector<float>{1, 2, 3, 4}, 0);
  const std::span<float> kernel = session.tensor<float>("w");
  for (std::size_t i = 0; i < 9; ++i) kernel[i] = static_cast<float>(i + 1);
  session.run();
  const std::span<float> y = session.tensor<float>("y");
  std::vector<float> expected(16, 0);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      for (int p = 0; p < 3; ++p) {
        for (int q = 0; q < 3; ++q) {
          const int row = 2 * i + p - 1, column = 2 * j + q - 1;
          if (row < 0 || column < 0 || row > 3 || column > 3) continue;
          expected[static_cast<std::size_t>(4 * row + column)] += static_cast<float>((2 * i + j + 1) * (3 * p + q + 1));
        }
      }
    }
  }
  EXPECT_EQ(std::vector<float>(y.begin(), y.end()), expected);
}

TEST(TransposedConvolution, HasTheRightGradientsAndSizes) {
  struct Case {
    Shape x, weight, y;
    ConvolutionOptions options;
    std::int64_t output_padding;
  };
  const std::vector<Case> cases = {{{2, 3, 4, 5}, {4, 4, 3, 5}, {2, 6, 8, 3}, {.stride = 2, .padding = 1}, 0},
                                   {{2, 3, 3, 2}, {3, 3, 4, 2}, {2, 6, 6, 4}, {.stride = 2, .padding = 1}, 1},
                                   {{1, 4, 3, 6}, {3, 2, 2, 6}, {1, 13, 9, 6}, {.stride = 3, .groups = 3}, 1},
                                   {{2, 3, 2, 2}, {3, 3, 3, 2}, {2, 5, 4, 3}, {.padding = 1, .dilation = 2}, 0}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.y.str());
    const auto made = [&](Graph& g) {
      return transposed_conv2d(g.input("x", {c.x, DType::f64}), g.parameter("w", {c.weight, DType::f64}), c.options,
                               c.output_padding);
    };
    {
      Graph g;
      EXPECT_EQ(made(g).shape(), c.y);
    }
    check_gradients([&](Graph& g) { return sum_all(square(made(g))); }, {"x", "w"},
                    {.tolerance = 1e-6, .most_elements = 20});
  }
}

TEST(TransposedConvolution, RefusesWhatDoesNotFit) {
  Graph g;
  const Wire x = g.input("x", {{2, 4, 4, 6}, DType::f32}), w = g.parameter("w", {{3, 3, 2, 6}, DType::f32});
  const auto said = [&](Wire weight, ConvolutionOptions options, std::int64_t padding) {
    return error_of([&] { transposed_conv2d(x, weight, options, padding); });
  };
  EXPECT_NE(said(w, {.stride = 2}, 2).find("an output padding of 2; expected 0 to 1, below the stride"),
            std::string::npos);
  EXPECT_NE(said(g.parameter("v", {{3, 3, 6, 2}, DType::f32}), {}, 0).find("needs a weight"), std::string::npos);
  EXPECT_NE(said(w, {.padding = 5}, 0).find("has nothing left"), std::string::npos);
}

TEST(Convolution, CountsItsProducts) {
  const std::vector<Type> in = {{{2, 6, 6, 4}, DType::f32}, {{3, 3, 2, 8}, DType::f32}};
  const Conv2d op({.padding = 1, .groups = 2});
  const std::vector<Type> out = op.infer(in);
  EXPECT_EQ(op.cost(in, out).products, 2.0 * 2 * 36 * 8 * 9 * 2);
}

TEST(Convolution, RefusesWhatDoesNotFit) {
  Graph g;
  auto input = [&, i = 0](const Shape& shape) mutable {
    return g.input("i" + std::to_string(i++), {shape, DType::f32});
  };
  const auto said = [&](Wire x, Wire w, ConvolutionOptions options = {}) {
    return error_of([&] { conv2d(x, w, options); });
  };
  const Wire x = input({2, 4, 4, 6});
  EXPECT_NE(said(input({4, 4, 6}), input({3, 3, 6, 2})).find("needs images"), std::string::npos);
  EXPECT_NE(said(x, input({3, 3, 5, 2})).find("reads 5 channels a group but the image [2, 4, 4, 6] has 6"),
            std::string::npos);
  EXPECT_NE(said(x, input({3, 3, 6, 2}), {.groups = 4}).find("do not divide into 4 groups"), std::string::npos);
  EXPECT_NE(said(x, input({5, 5, 6, 2})).find("reaches over 5 positions does not fit into 4 with padding 0"),
            std::string::npos);
  EXPECT_NE(said(x, input({3, 3, 6, 2}), {.stride = 0}).find("expected stride"), std::string::npos);
}

}  // namespace
}  // namespace norma
