// Mixed precision as a pass over graphs: what becomes bf16, and where conversions stand.
#include <gtest/gtest.h>

#include <algorithm>

#include "norma/graph/cast_all.h"
#include "norma/graph/differentiate.h"
#include "norma/graph/plan.h"
#include "norma/norms/row.h"
#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/linear.h"
#include "norma/ops/matmul.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

// Has every op in every width and runs none.
class AnyWidth final : public Backend {
 public:
  std::string_view name() const override { return "any"; }
  bool has(const Op& op, Types in, Types out) const override {
    const auto narrow = [](const Type& type) { return type.dtype == DType::bf16; };
    return name_of_wide_op_ != op.name() ||
           (std::none_of(in.begin(), in.end(), narrow) && std::none_of(out.begin(), out.end(), narrow));
  }
  std::unique_ptr<const Kernel> make(const Op&, Types, Types) const override {
    return std::make_unique<const Kernel>(Needs{});
  }
  std::span<const Rewrite> rewrites() const override { return {}; }
  std::int64_t alignment() const override { return 64; }

  std::string name_of_wide_op_;  // has no narrow kernel
};

DType dtype_of_slot(const Plan& plan, const std::string& name) { return plan.slot(name).type.dtype; }

int count_of(const Plan& plan, std::string_view op) {
  return static_cast<int>(
      std::count_if(plan.nodes().begin(), plan.nodes().end(), [&](const Node& node) { return node.op->name() == op; }));
}

std::vector<DType> dtypes(const Plan& plan, const std::vector<int>& ids) {
  std::vector<DType> found;
  for (const int id : ids) found.push_back(plan.values()[static_cast<std::size_t>(id)].type.dtype);
  return found;
}

const Node& only(const Plan& plan, std::string_view op) {
  const auto found =
      std::find_if(plan.nodes().begin(), plan.nodes().end(), [&](const Node& node) { return node.op->name() == op; });
  if (found == plan.nodes().end()) throw std::runtime_error("no " + std::string(op));
  return *found;
}

// x + W2 gelu(W1 norm(x)), its mean square and its gradients.
std::shared_ptr<const Plan> residual_block(const AnyWidth& backend, bool post = false, DType stream = DType::f32) {
  Graph graph;
  const Wire x = graph.input("x", {{4, 8}, DType::f32});
  if (stream == DType::bf16) graph.narrow_stream(x);
  const Wire w1 = graph.parameter("w1", {{8, 16}, DType::f32}), w2 = graph.parameter("w2", {{16, 8}, DType::f32});
  const Wire gain = graph.parameter("gain", {{8}, DType::f32}), bias = graph.parameter("bias", {{8}, DType::f32});
  const auto branch = [&](Wire in) { return linear(activate(linear(in, w1), Activation::gelu), w2); };
  Wire y = post ? layer_norm(x + branch(x), gain, bias) : x + branch(layer_norm(x, gain, bias));
  if (post) y = y + branch(y);
  const Wire sum = matmul_reduce_rows(reshape(y, {32, 1}), reshape(y, {32, 1}));
  const Wires wrt = {w1, w2, gain};
  const Wires gradients = differentiate(sum, wrt);
  graph.output("y", y);
  for (std::size_t i = 0; i < wrt.size(); ++i) graph.output("d" + wrt[i].name(), gradients[i]);
  return compile(graph, backend, {.narrow = true});
}

TEST(Narrow, WhatTheHostReadsStaysWide) {
  const auto plan = residual_block({});
  for (const std::string name : {"x", "w1", "w2", "gain", "y", "dw1", "dw2", "dgain"}) {
    EXPECT_EQ(dtype_of_slot(*plan, name), DType::f32) << name;
  }
}

TEST(Narrow, WeightsAreConvertedTogether) {
  const auto plan = residual_block({});
  int casts = 0;
  for (const Node& node : plan->nodes()) {
    const bool of_weights = plan->values()[static_cast<std::size_t>(node.inputs[0])].role == Role::parameter;
    if (node.op->name() != "cast_all" || !of_weights) continue;
    ++casts;
    EXPECT_EQ(node.inputs.size(), 2u);
    EXPECT_EQ(dtypes(*plan, node.outputs), std::vector<DType>(2, DType::bf16));
  }
  EXPECT_EQ(casts, 1);
}

TEST(Narrow, TheBranchIsNarrowAndTheStreamIsNot) {
  const auto plan = residual_block({});
  const Node& norm = only(*plan, "layer_norm");
  EXPECT_EQ(dtypes(*plan, {norm.inputs[0], norm.outputs[0]}), (std::vector{DType::f32, DType::bf16}));
  EXPECT_EQ(dtypes(*plan, only(*plan, "linear").inputs), std::vector<DType>(2, DType::bf16));
  const Node& add = only(*plan, "sum");
  EXPECT_EQ(dtypes(*plan, add.inputs), (std::vector{DType::f32, DType::bf16}));
  EXPECT_EQ(dtypes(*plan, add.outputs), std::vector{DType::f32});
}

TEST(Narrow, AStreamThatBeginsNarrowStaysNarrow) {
  for (const bool post : {false, true}) {
    const auto plan = residual_block({}, post, DType::bf16);
    const Node &norm = only(*plan, "layer_norm"), &add = only(*plan, "sum");
    EXPECT_EQ(dtypes(*plan, {norm.inputs[0], norm.outputs[0]}), std::vector<DType>(2, DType::bf16)) << post;
    EXPECT_EQ(dtypes(*plan, add.inputs), std::vector<DType>(2, DType::bf16)) << post;
    EXPECT_EQ(dtypes(*plan, add.outputs), std::vector{DType::bf16}) << post;
    for (const std::string name : {"x", "w1", "gain", "y", "dw1", "dgain"}) {
      EXPECT_EQ(dtype_of_slot(*plan, name), DType::f32) << name;
    }
  }
}

TEST(Narrow, WhoeverComputesBothWidthsWritesBoth) {
  const auto plan = residual_block({}, true);
  const Node& norm = only(*plan, "layer_norm");
  ASSERT_EQ(norm.outputs.size(), 4u);  // y, rstd, mean, and y again
  EXPECT_EQ(dtypes(*plan, {norm.outputs.front(), norm.outputs.back()}), (std::vector{DType::f32, DType::bf16}));
}

TEST(Narrow, AnOpWithoutANarrowKernelStaysWide) {
  AnyWidth backend;
  const int before = count_of(*residual_block(backend), "cast_all");
  backend.name_of_wide_op_ = "gelu";
  const auto plan = residual_block(backend);
  const Node& gelu = only(*plan, "gelu");
  EXPECT_EQ(dtypes(*plan, {gelu.inputs[0], gelu.outputs[0]}), std::vector<DType>(2, DType::f32));
  EXPECT_EQ(count_of(*plan, "cast_all"), before + 2);  // into it and out of it
}

TEST(Narrow, NothingHappensUnlessAsked) {
  Graph graph;
  const Wire x = graph.input("x", {{4, 8}, DType::f32}), w = graph.parameter("w", {{8, 8}, DType::f32});
  graph.output("y", linear(x, w));
  const auto plan = compile(graph, AnyWidth{}, {});
  EXPECT_EQ(count_of(*plan, "cast_all"), 0);
}

}  // namespace
}  // namespace norma
