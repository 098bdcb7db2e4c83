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

// Tensors of the stream's size, not lines of norms, that are read once more for their sums over rows.
int biases_summed_alone(const Plan& plan) {
  int found = 0;
  for (const Step& step : plan.steps()) {
    const Node& node = plan.nodes()[static_cast<std::size_t>(step.node)];
    if (node.op->name() != "column_sums") continue;
    for (const int id : node.inputs) {
      found += plan.values()[static_cast<std::size_t>(id)].type.shape.rank() == 3 ? 1 : 0;
    }
  }
  return found;
}

TrainingStep step_of(const std::string& scheme, StepOptions options) {
  ModelConfig model{.layers = 6, .width = 64, .heads = 2, .vocabulary = 64, .batch = 4, .time = 64};
  model.scheme = scheme;
  options.backend = &cuda_backend();
  return build_training_step(model, options);
}

TEST(CudaRewrites, SumsOverRowsAreGathered) {
  for (const std::string scheme : {"pre", "post", "deepnorm"}) {
    const TrainingStep step = step_of(scheme, {.probes = false, .narrow = true});
    const Plan& plan = *step.plan;
    // Four biases of six layers, and the sums of two norms each, in a few launches beside the main chain.
    EXPECT_GE(count(plan, "column_sums"), 2) << scheme;
    EXPECT_LE(count(plan, "column_sums"), 4) << scheme;
    EXPECT_LE(count(plan, "sum_to"), 2) << scheme;
    EXPECT_GE(count(plan, "layer_norm_backward*", "lines="), 10) << scheme;
    EXPECT_EQ(count(plan, "attention_backward", "context"), 6) << scheme;
    EXPECT_LE(biases_summed_alone(plan), count(plan, "column_sums")) << scheme;  // others beside their weights
    for (const Step& one : plan.steps()) {
      const Node& node = plan.nodes()[static_cast<std::size_t>(one.node)];
      if (node.op->name() != "column_sums") continue;
      EXPECT_EQ(one.kernel->lane, 1) << scheme;
    }
  }
}

TEST(CudaRewrites, WeightsGradientsRunBesideAttention) {
  for (const std::string scheme : {"pre", "deepnorm"}) {
    const TrainingStep step = step_of(scheme, {.probes = false, .narrow = true});
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

// Sums that would read a large tensor once more come from whoever makes it: GPT-2's layers, of which only queries, keys
// and values are read again.
TEST(CudaRewrites, LargeSumsComeFromTheirMakers) {
  ModelConfig model{.layers = 3, .width = 768, .heads = 12, .vocabulary = 64, .batch = 32, .time = 1024};
  for (const StreamWidth width : {StreamWidth::f32, StreamWidth::bf16}) {
    model.stream = width;
    const bool narrow = width == StreamWidth::bf16;
    const TrainingStep step = build_training_step(model, {.probes = false, .narrow = true, .backend = &cuda_backend()});
    EXPECT_EQ(count(*step.plan, "matmul_slope", "lines=512"), 3) << narrow;
    EXPECT_GE(count(*step.plan, "layer_norm_backward*", "lines="), 5) << narrow;
    EXPECT_EQ(count(*step.plan, "layer_norm_backward*", "totals"), narrow ? 5 : 0);
    EXPECT_LE(count(*step.plan, "sum_to"), narrow ? 5 : 10);
  }
}

// A layer of a graph: the sum over neighbours takes the bias, the stream, the norm and its relu, and in the backward
// pass the product takes relu.
TEST(CudaRewrites, GraphLayersAreFewKernels) {
  ModelConfig model{.family = "gcn", .layers = 6, .width = 64, .classes = 7, .batch = 1};
  model.sizes = {{"nodes", 300}, {"edges", 1500}, {"features", 100}};
  model.scheme = "res_plus";
  for (const auto& [narrow, probes] : std::vector<std::pair<bool, bool>>{{false, false}, {true, false}, {true, true}}) {
    const TrainingStep step =
        build_training_step(model, {.probes = probes, .narrow = narrow, .backend = &cuda_backend()});
    EXPECT_EQ(count(*step.plan, "neighbour_norm", "relu"), 6) << narrow << probes;
    EXPECT_EQ(count(*step.plan, "neighbour_affine"), 0) << narrow << probes;
    for (const Step& one : step.plan->steps()) {  // branches are written for probes alone
      if (step.plan->nodes()[static_cast<std::size_t>(one.node)].op->name() != "neighbour_norm") continue;
      EXPECT_EQ(one.offsets.back() >= 0, probes) << narrow;
      EXPECT_EQ(!one.unwatched_offsets.empty() && one.unwatched_offsets.back() < 0, probes) << narrow;
    }
    EXPECT_EQ(count(*step.plan, "add_layer_norm"), 0) << narrow << probes;
    EXPECT_EQ(count(*step.plan, "neighbour_scaled"), 6) << narrow;
    EXPECT_EQ(count(*step.plan, "matmul_slope"), 6) << narrow;
    EXPECT_EQ(count(*step.plan, "add"), 0) << narrow;
    EXPECT_EQ(count(*step.plan, "relu"), 0) << narrow << ": norms have it behind them";
    EXPECT_EQ(count(*step.plan, "rsqrt"), 1) << narrow << ": degrees are those of all layers";
    EXPECT_EQ(count(*step.plan, "layer_norm_backward*", "totals"), 6) << narrow << ": biases are summed there";
    EXPECT_EQ(biases_summed_alone(*step.plan), 0) << narrow << probes;
  }
}

// Four layers' branches and streams in one op, then those of two, and none alone; what is watched only is left out of
// other steps.
TEST(CudaRewrites, ProbesAreGathered) {
  for (const std::string scheme : {"pre", "post"}) {
    const TrainingStep step = step_of(scheme, {.narrow = true});
    EXPECT_EQ(count(*step.plan, "statistics_of_several"), 2) << scheme;
    EXPECT_EQ(count(*step.plan, "statistics"), 0) << scheme;
    EXPECT_EQ(count(*step.plan, "attention_probes", "x6"), 1) << scheme;
    EXPECT_EQ(count(*step.plan, "attention_probe"), 0) << scheme;
    for (const Step& one : step.plan->steps()) {
      const std::string_view name = step.plan->nodes()[static_cast<std::size_t>(one.node)].op->name();
      EXPECT_EQ(one.only_watched, name == "statistics_of_several" || name == "attention_probes") << name;
    }
  }
}

// What the sum of a norm or of a residual is stored as.
TEST(CudaRewrites, AStreamIsAsWideAsTheModelSays) {
  for (const std::string scheme : {"pre", "post", "deepnorm", "peri"}) {
    for (const StreamWidth width : {StreamWidth::f32, StreamWidth::bf16}) {
      ModelConfig model{.layers = 6, .width = 64, .heads = 2, .vocabulary = 64, .batch = 4, .time = 64};
      model.scheme = scheme;
      model.stream = width;
      const TrainingStep step = build_training_step(model, {.narrow = true, .backend = &cuda_backend()});
      std::string wide;  // what layers make of the stream's size
      for (const Step& one : step.plan->steps()) {
        const Node& node = step.plan->nodes()[static_cast<std::size_t>(one.node)];
        for (const int id : node.outputs) {
          const Value& value = step.plan->values()[static_cast<std::size_t>(id)];
          const bool of_stream = value.type.shape == Shape{4, 64, 64} && value.type.dtype == DType::f32;
          if (std::string(node.scope).starts_with("layers.") && of_stream) wide += std::string(node.op->name()) + " ";
        }
      }
      EXPECT_EQ(wide.empty(), width == StreamWidth::bf16) << scheme << ": " << wide;
    }
  }
}

// Tokens and positions become the stream in one op, and the rows of their gradient are added to that of the head.
TEST(CudaRewrites, EmbeddingsTakeWhatStandsBesideThem) {
  for (const StreamWidth width : {StreamWidth::f32, StreamWidth::bf16}) {
    ModelConfig model{.layers = 3, .width = 64, .heads = 2, .vocabulary = 64, .batch = 4, .time = 64};
    model.tied = true;
    model.stream = width;
    const TrainingStep step = build_training_step(model, {.probes = false, .narrow = true, .backend = &cuda_backend()});
    EXPECT_EQ(count(*step.plan, "embedding"), 1);
    EXPECT_EQ(count(*step.plan, "embedding_backward"), 1);
    EXPECT_EQ(count(*step.plan, "add"), 0);
    EXPECT_EQ(count(*step.plan, "sum"), 0);
    EXPECT_EQ(count(*step.plan, "cast_all"), 1) << "the weights";
    for (const Step& one : step.plan->steps()) {
      const Node& node = step.plan->nodes()[static_cast<std::size_t>(one.node)];
      if (node.op->name() != "embedding_backward") continue;
      ASSERT_EQ(node.inputs.size(), 3U);
      EXPECT_EQ(one.offsets[2], one.offsets[3]) << "the sums go where the head's gradient is";
    }
  }
}

TEST(CudaRewrites, SecondEditionsHaveALaneOfTheirOwn) {
  const TrainingStep step = step_of("deepnorm", {.probes = false, .keep = Keep::lean, .narrow = true});
  int again = 0;
  for (const Step& one : step.plan->steps()) {
    const Node& node = step.plan->nodes()[static_cast<std::size_t>(one.node)];
    EXPECT_EQ(one.kernel->lane == CudaBackend::kLaneOfSecondEditions, node.again) << step.plan->node_name(one.node);
    again += node.again ? 1 : 0;
  }
  // Of every layer but the last: queries, keys and values, and attention; the hidden layer where it is read.
  EXPECT_EQ(again, 10);
  EXPECT_EQ(count(*step.plan, "linear_slope"), 5);
  EXPECT_EQ(count(*step.plan, "matmul_slope"), 1);
  EXPECT_LT(step.plan->transient_bytes(),
            step_of("deepnorm", {.probes = false, .narrow = true}).plan->transient_bytes());
}

// The library makes relu's hidden layers, and all of f32: there they are made again beside the chain.
TEST(CudaRewrites, HiddenLayersOfTheLibraryAreMadeAgainBeside) {
  for (const Activation activation : {Activation::relu, Activation::gelu}) {
    for (const bool narrow : {false, true}) {
      ModelConfig model{.layers = 6, .width = 64, .heads = 2, .vocabulary = 64, .batch = 4, .time = 64};
      model.activation = activation;
      const TrainingStep step = build_training_step(
          model, {.probes = false, .keep = Keep::lean, .narrow = narrow, .backend = &cuda_backend()});
      const bool together = narrow && activation != Activation::relu;
      EXPECT_EQ(count(*step.plan, "linear_slope"), together ? 5 : 0) << name_of(activation) << narrow;
    }
  }
}

}  // namespace
}  // namespace norma
