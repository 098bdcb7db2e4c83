// What a plan for a GPU looks like. Needs no GPU.
#include <gtest/gtest.h>

#include "norma/backends/cuda.h"
#include "norma/train/step.h"

namespace norma {
namespace {

int count(const Plan& plan, std::string_view op, std::string_view attribute = "") {
  int found = 0;
  for (const Step& step : plan.steps()) {
    const Node& node = plan.nodes()[static_cast<std::size_t>(step.node)];
    const bool named =
        op.ends_with('*') ? node.op->name().starts_with(op.substr(0, op.size() - 1)) : node.op->name() == op;
    found += named && node.op->attributes().find(attribute) != std::string::npos ? 1 : 0;
  }
  return found;
}

TrainingStep step_of(const std::string& scheme, StepOptions options) {
  ModelConfig model{.layers = 6, .width = 64, .heads = 2, .vocabulary = 64, .batch = 4, .time = 64};
  model.scheme = scheme;
  options.backend = &cuda_backend();
  options.probes = false;
  return build_training_step(model, options);
}

TEST(CudaRewrites, SumsOverRowsAreGathered) {
  for (const std::string scheme : {"pre", "post", "deepnorm"}) {
    const TrainingStep step = step_of(scheme, {.narrow = true});
    const Plan& plan = *step.plan;
    // Four biases of six layers, and the sums of two norms each, in a few launches beside the main chain.
    EXPECT_GE(count(plan, "column_sums"), 2) << scheme;
    EXPECT_LE(count(plan, "column_sums"), 4) << scheme;
    EXPECT_LE(count(plan, "sum_to"), 2) << scheme;
    EXPECT_GE(count(plan, "layer_norm_backward*", "lines="), 10) << scheme;
    EXPECT_EQ(count(plan, "attention_backward", "context"), 6) << scheme;
    for (const Step& one : plan.steps()) {
      const Node& node = plan.nodes()[static_cast<std::size_t>(one.node)];
      if (node.op->name() != "column_sums") continue;
      EXPECT_EQ(one.kernel->lane, 1) << scheme;
    }
  }
}

TEST(CudaRewrites, WeightsGradientsRunBesideAttention) {
  for (const std::string scheme : {"pre", "deepnorm"}) {
    const TrainingStep step = step_of(scheme, {.narrow = true});
    const Plan& plan = *step.plan;
    EXPECT_EQ(count(plan, "matmul_slope"), 6) << scheme;
    // A layer's four, of which the last comes after its attention and so joins those of the layer below; none is left.
    EXPECT_EQ(count(plan, "weight_gradients"), 7) << scheme;
    EXPECT_EQ(count(plan, "matmul", "reduce_rows"), 0) << scheme;
    for (std::size_t index = 0; index + 1 < plan.steps().size(); ++index) {
      const Step &one = plan.steps()[index], &next = plan.steps()[index + 1];
      if (plan.nodes()[static_cast<std::size_t>(next.node)].op->name() != "attention_backward") continue;
      const std::string_view name = plan.nodes()[static_cast<std::size_t>(one.node)].op->name();
      EXPECT_TRUE(name == "weight_gradients" || name == "column_sums") << scheme << ": " << name;
      EXPECT_EQ(one.kernel->lane, 1) << scheme;
    }
  }
}

TEST(CudaRewrites, SecondEditionsHaveALaneOfTheirOwn) {
  const TrainingStep step = step_of("deepnorm", {.keep = Keep::lean, .narrow = true});
  int again = 0;
  for (const Step& one : step.plan->steps()) {
    const Node& node = step.plan->nodes()[static_cast<std::size_t>(one.node)];
    EXPECT_EQ(one.kernel->lane == CudaBackend::kLaneOfSecondEditions, node.again) << step.plan->node_name(one.node);
    again += node.again ? 1 : 0;
  }
  // Of every layer but the last: the hidden layer, queries, keys and values, and attention.
  EXPECT_EQ(again, 15);
  EXPECT_LT(step.plan->transient_bytes(), step_of("deepnorm", {.narrow = true}).plan->transient_bytes());
}

}  // namespace
}  // namespace norma
