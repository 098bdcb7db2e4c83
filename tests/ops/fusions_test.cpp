// Every named fusion of ops: it fires, and fused = unfused for outputs and gradients.
#include "norma/ops/fusions.h"

#include "check.h"
#include "norma/ops/attention.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/linear.h"
#include "norma/ops/matmul.h"

namespace norma {
namespace {

struct Built {
  Wire loss;
  std::vector<std::string> wrt;
};

// Runs `build` with and without one rewrite, applied before and after differentiation, and compares loss and gradients.
void expect_fused_equals_unfused(const std::string& name, const std::function<Built(Graph&)>& build) {
  const auto run = [&](bool fused) {
    std::vector<Rewrite> rewrites;
    std::vector<Rewrite> all = op_fusions();
    for (const Rewrite& rewrite : gradient_fusions()) all.push_back(rewrite);
    for (const Rewrite& rewrite : all) {
      if (fused && rewrite.name == name) rewrites.push_back(rewrite);
    }
    Graph g;
    Built built = build(g);
    int fired = 0;
    for (const auto& [unused, count] : fuse(g, rewrites)) fired += count;
    Wires wrt;
    for (const std::string& parameter : built.wrt) wrt.push_back(g.find(parameter));
    const Wires gradients = differentiate(built.loss, wrt);
    g.output("loss", built.loss);
    for (std::size_t i = 0; i < wrt.size(); ++i) g.output("d/" + built.wrt[i], gradients[i]);
    for (const auto& [unused, count] : fuse(g, rewrites)) fired += count;
    EXPECT_EQ(fired > 0, fused) << name;
    CpuSession session(test::plain_plan(g));
    test::randomise_all(session);
    if (session.plan().has_slot("targets")) {
      const std::span<std::int32_t> targets = session.tensor<std::int32_t>("targets");
      for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<std::int32_t>(i % 5);
    }
    session.run();
    std::vector<double> values(session.tensor<double>("loss").begin(), session.tensor<double>("loss").end());
    for (const std::string& parameter : built.wrt) {
      for (const double v : session.tensor<double>("d/" + parameter)) values.push_back(v);
    }
    return values;
  };
  const std::vector<double> unfused = run(false), fused = run(true);
  ASSERT_EQ(fused.size(), unfused.size());
  double largest = 0;
  for (const double v : unfused) largest = std::max(largest, std::abs(v));
  EXPECT_GT(largest, 0);
  for (std::size_t i = 0; i < fused.size(); ++i)
    EXPECT_NEAR(fused[i], unfused[i], 1e-13 * largest) << name << " at " << i;
}

TEST(Fusions, LinearActivation) {
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::silu}) {
    expect_fused_equals_unfused("linear_activation", [&](Graph& g) -> Built {
      const Wire x = g.input("x", {{6, 4}, DType::f64}), w = g.parameter("w", {{4, 9}, DType::f64}),
                 b = g.parameter("b", {{9}, DType::f64});
      return {sum_all(square(activate(linear(x, w, b), activation))), {"x", "w", "b"}};
    });
  }
}

TEST(Fusions, LinearCrossEntropy) {
  expect_fused_equals_unfused("linear_cross_entropy", [](Graph& g) -> Built {
    const Wire x = g.input("x", {{6, 4}, DType::f64}), w = g.parameter("w", {{4, 5}, DType::f64});
    return {cross_entropy(linear(x, w), g.input("targets", {{6}, DType::i32})), {"x", "w"}};
  });
}

TEST(Fusions, LossGradient) {
  for (const Transpose transpose : {Transpose::no, Transpose::yes}) {
    expect_fused_equals_unfused("loss_gradient", [&](Graph& g) -> Built {
      const Wire x = g.input("x", {{6, 4}, DType::f64});
      const Wire w = g.parameter("w", {transpose == Transpose::no ? Shape{4, 5} : Shape{5, 4}, DType::f64});
      return {linear_cross_entropy(x, w, g.input("targets", {{6}, DType::i32}), {}, {.weight = transpose}), {"x", "w"}};
    });
  }
}

TEST(Fusions, LossGradientWaitsForWhatItIsMultipliedBy) {
  Graph g;
  const Wire x = g.input("x", {{6, 4}, DType::f64}), w = g.parameter("w", {{4, 5}, DType::f64});
  const Wire loss = linear_cross_entropy(x, w, g.input("targets", {{6}, DType::i32}));
  const Wire wrt[] = {w};
  g.output("d", differentiate(square(loss), wrt)[0]);  // the gradient by the loss is computed from the loss
  EXPECT_EQ(fuse(g, gradient_fusions()).at("loss_gradient"), 0);
}

TEST(Fusions, AttentionContext) {
  expect_fused_equals_unfused("attention_context", [](Graph& g) -> Built {
    const Wire qkv = g.input("qkv", {{2, 5, 24}, DType::f64});
    return {sum_all(square(attention_packed(qkv, {.heads = 2}))), {"qkv"}};
  });
  expect_fused_equals_unfused("attention_context", [](Graph& g) -> Built {
    const Wire q = g.input("q", {{2, 5, 6}, DType::f64});
    const Wire k = g.input("k", {{2, 7, 6}, DType::f64}), v = g.input("v", {{2, 7, 6}, DType::f64});
    const Wire lengths = g.input("targets", {{2}, DType::i32});  // 0 and 1: the first sample sees nothing
    return {sum_all(square(attention(q, k, v, {.heads = 2, .mask = Mask::full}, lengths) + q)), {"q", "k", "v"}};
  });
}

TEST(Fusions, AttentionContextIsThatOfTheSameAttention) {
  Graph g;
  const Wire qkv = g.input("qkv", {{1, 4, 12}, DType::f64});
  const Wire context = attention_packed(qkv, {.heads = 2});
  const Wire wrt[] = {qkv};
  g.output("d", differentiate(sum_all(context), wrt)[0]);
  EXPECT_EQ(fuse(g, gradient_fusions()).at("attention_context"), 1);
  const Node& backward = *std::find_if(g.nodes().begin(), g.nodes().end(),
                                       [](const Node& node) { return node.op->name() == "attention_backward"; });
  EXPECT_EQ(backward.inputs[1], context.id());
  EXPECT_NE(backward.op->attributes().find("context"), std::string::npos);
  EXPECT_EQ(fuse(g, gradient_fusions()).at("attention_context"), 0);  // it has it
}

TEST(Fusions, ColumnSums) {
  expect_fused_equals_unfused("column_sums", [](Graph& g) -> Built {
    Wire x = g.input("x", {{2, 3, 4}, DType::f64});
    std::vector<std::string> names;
    for (const std::string layer : {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}) {
      const Wire w = g.parameter("w" + layer, {{4, 4}, DType::f64}), b = g.parameter("b" + layer, {{4}, DType::f64});
      x = tanh(linear(x, w, b));
      names.insert(names.end(), {"w" + layer, "b" + layer});
    }
    return {sum_all(square(x)), names};
  });
}

// One op has a few tensors, not all of a net's; and a sum that is read stays in front of its reader.
TEST(Fusions, ColumnSumsAreGatheredByTheFew) {
  Graph g;
  const Wire x = g.input("x", {{6, 4}, DType::f64});
  Wires biases;
  Wire y = x;
  for (int layer = 0; layer < 10; ++layer) {
    biases.push_back(g.parameter("b" + std::to_string(layer), {{4}, DType::f64}));
    y = tanh(y + biases.back());
  }
  Wires gradients = differentiate(sum_all(y), biases);
  for (std::size_t i = 0; i < biases.size(); ++i) g.output("d" + std::to_string(i), gradients[i]);
  EXPECT_EQ(fuse(g, gradient_fusions()).at("column_sums"), 8);  // seven make one of eight, the last two another
  std::vector<std::size_t> sizes;
  for (const Node& node : g.nodes()) {
    if (node.op->name() == "column_sums") sizes.push_back(node.inputs.size());
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{8, 2}));
}

Built layers_with_activations(Graph& g, Activation activation) {
  Wire x = g.input("x", {{2, 3, 4}, DType::f64});
  std::vector<std::string> names;
  for (const std::string layer : {"1", "2", "3"}) {
    const Wire u = g.parameter("u" + layer, {{4, 5}, DType::f64}), b = g.parameter("b" + layer, {{5}, DType::f64});
    const Wire v = g.parameter("v" + layer, {{5, 4}, DType::f64});
    x = x + linear(activate(linear(x, u, b), activation), v, {});
    names.insert(names.end(), {"u" + layer, "b" + layer, "v" + layer});
  }
  return {sum_all(square(x)), names};
}

TEST(Fusions, ProductSlope) {
  for (const Activation activation : {Activation::relu, Activation::gelu_tanh, Activation::silu})
    expect_fused_equals_unfused("product_slope", [=](Graph& g) { return layers_with_activations(g, activation); });
}

// A bias before an activation, of a tensor that is large enough: its gradient is made of what the product wrote on its
// way. A number is lost if a line is; a small tensor is left alone.
TEST(Fusions, SlopeLines) {
  const auto gradients = [](std::int64_t rows, bool fused) {
    Graph g;
    const Wire x = g.input("x", {{rows, 64}, DType::f64}), b = g.parameter("b", {{64}, DType::f64});
    const Wire y = activate(linear(x, g.parameter("u", {{64, 64}, DType::f64}), b), Activation::silu);
    const Wires wrt = {b};
    g.output("d", differentiate(mean_all(square(linear(y, g.parameter("v", {{64, 2}, DType::f64}), {}))), wrt)[0]);
    const bool large = rows * 64 >= std::int64_t{4} << 20;
    if (fused) {
      auto fired = fuse(g, gradient_fusions());
      EXPECT_EQ(fired["slope_lines"], large ? 1 : 0) << rows;
    }
    CpuSession session(test::plain_plan(g));
    test::randomise_all(session);
    session.run();
    return std::vector<double>(session.tensor<double>("d").begin(), session.tensor<double>("d").end());
  };
  for (const std::int64_t rows : {65601, 100}) {
    const std::vector<double> fused = gradients(rows, true), unfused = gradients(rows, false);
    double largest = 0;
    for (const double v : unfused) largest = std::max(largest, std::abs(v));
    ASSERT_GT(largest, 0);
    for (std::size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], unfused[i], 1e-12 * largest) << i;
  }
}

TEST(Fusions, WeightAndBias) {
  expect_fused_equals_unfused("weight_and_bias", [](Graph& g) { return layers_with_activations(g, Activation::silu); });
}

TEST(Fusions, WeightGradients) {
  expect_fused_equals_unfused("weight_gradients",
                              [](Graph& g) { return layers_with_activations(g, Activation::gelu); });
}

TEST(Fusions, ScaledAdd) {
  for (const Shape& a : {Shape{1}, Shape{5}}) {
    expect_fused_equals_unfused("scaled_add", [&](Graph& g) -> Built {
      const Wire x = g.input("x", {{6, 5}, DType::f64}), y = g.input("y", {{6, 5}, DType::f64});
      const Wire s = g.parameter("a", {a, DType::f64}), t = g.parameter("b", {{1}, DType::f64});
      return {sum_all(square(s * x + y * t)), {"x", "y", "a", "b"}};
    });
    expect_fused_equals_unfused("scaled_add", [&](Graph& g) -> Built {
      const Wire x = g.input("x", {{6, 5}, DType::f64}), y = g.input("y", {{6, 5}, DType::f64});
      return {sum_all(square(x + y * g.parameter("a", {a, DType::f64}))), {"x", "y", "a"}};
    });
  }
}

TEST(Fusions, MatmulAdd) {
  expect_fused_equals_unfused("matmul_add", [](Graph& g) -> Built {
    const Wire x = g.input("x", {{6, 4}, DType::f64}), w = g.parameter("w", {{4, 4}, DType::f64}),
               v = g.parameter("v", {{4, 4}, DType::f64});
    // x is read three times, so three gradients meet at it; two of them are products.
    return {sum_all(square(linear(x, w)) + square(linear(x, v)) + x), {"x", "w", "v"}};
  });
}

}  // namespace
}  // namespace norma
