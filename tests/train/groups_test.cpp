#include "norma/train/groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "error_of.h"
#include "norma/train/config.h"
#include "norma/train/step.h"

namespace norma {
namespace {

TEST(Groups, StarsStandForAnything) {
  EXPECT_TRUE(matches("layers.0.attn.out.weight", "layers.0.attn.out.weight"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("layers.*.weight", "layers.0.attn.out.weight"));
  EXPECT_TRUE(matches("*.weight*", "layers.0.attn.out.weight"));
  EXPECT_TRUE(matches("l**s", "layers"));
  EXPECT_FALSE(matches("layers.1.*", "layers.10.attn.out.weight"));
  EXPECT_FALSE(matches("layers", "layers.0"));
  EXPECT_FALSE(matches("*.bias", "head.weight"));
  EXPECT_FALSE(matches("", "head"));
}

std::vector<ParameterSpec> three() {
  return {{.name = "embedding", .role = "embedding"},
          {.name = "layers.0.attn.norm.gain", .role = "norm"},
          {.name = "layers.0.ffn.out.weight", .lr = 0.5, .decay = 2, .role = "ffn"}};
}

TEST(Groups, VectorsDecayOnlyWhenAsked) {
  std::vector<ParameterSpec> specs = three();
  apply_groups({}, false, specs);
  EXPECT_EQ(specs[0].decay, 1);
  EXPECT_EQ(specs[1].decay, 0);
  EXPECT_EQ(specs[2].decay, 2);
  specs = three();
  apply_groups({}, true, specs);
  EXPECT_EQ(specs[1].decay, 1);
  specs = three();
  apply_groups({.lr = {}, .decay = {{"norm", 0.25}}, .eps = {}}, false, specs);
  EXPECT_EQ(specs[1].decay, 0.25);
}

TEST(Groups, LearnedVectorsDecayAsVectorsUnlessTheirSchemeSays) {
  const auto decay_of = [](const std::string& scheme, const char* name, bool vectors) {
    ModelConfig config{.layers = 1, .width = 8, .heads = 2};
    config.scheme = scheme;
    const TrainingStep step = build_training_step(config, {.decay_vectors = vectors});
    return std::ranges::find(step.parameters, name, &ParameterSpec::name)->decay;
  };
  EXPECT_EQ(decay_of("admin", "layers.0.attn.omega", false), 0);
  EXPECT_EQ(decay_of("admin", "layers.0.attn.omega", true), 1);
  EXPECT_EQ(decay_of("rezero", "layers.0.g", true), 0) << "the scheme says so";
}

TEST(Groups, EmbeddingsIncludePositions) {
  std::vector<ParameterSpec> specs = {{.name = "embedding.token", .role = "embedding"},
                                      {.name = "embedding.position", .role = "position"},
                                      {.name = "head.weight", .role = "head"}};
  std::vector<ParameterSpec> own = specs, named = specs;
  apply_groups({.lr = {{"embedding", 0.1}}, .decay = {}, .eps = {}}, false, specs);
  EXPECT_EQ(specs[0].lr, 0.1);
  EXPECT_EQ(specs[1].lr, 0.1);
  EXPECT_EQ(specs[2].lr, 1);
  apply_groups({.lr = {{"embedding", 0.1}, {"position", 0.5}}, .decay = {}, .eps = {}}, false, own);
  EXPECT_EQ(own[0].lr, 0.1);
  EXPECT_EQ(own[1].lr, 0.5) << "a rule of their own goes before";
  apply_groups({.lr = {{"embedding", 0.1}, {"*pos*", 0.5}}, .decay = {}, .eps = {}}, false, named);
  EXPECT_EQ(named[1].lr, 0.5);
}

TEST(Groups, TheLongestPatternHolds) {
  std::vector<ParameterSpec> specs = three();
  apply_groups(
      {.lr = {{"*", 3}, {"layers.*", 4}, {"layers.0.ffn.*", 0.1}}, .decay = {{"ffn", 0}}, .eps = {{"norm", 7}}}, false,
      specs);
  EXPECT_EQ(specs[0].lr, 3);
  EXPECT_EQ(specs[1].lr, 4);
  EXPECT_DOUBLE_EQ(specs[2].lr, 0.05) << "times what the scheme says";
  EXPECT_EQ(specs[2].decay, 0);
  EXPECT_EQ(specs[1].eps, 7);
}

TEST(Groups, APatternThatFitsNothingIsNamed) {
  std::vector<ParameterSpec> specs = three();
  const std::string error = test::error_of([&] {
    apply_groups({.lr = {{"embeding", 2}}, .decay = {}, .eps = {}}, false, specs);
  });
  EXPECT_NE(
      error.find("groups.lr: 'embeding' fits no parameter (did you mean 'embedding'?); expected a role (embedding, "
                 "ffn, norm)"),
      std::string::npos)
      << error;
}

// One step of plain descent moves each group by its own rate.
TEST(Groups, RatesReachTheOptimiser) {
  const ModelConfig model{.layers = 1, .width = 8, .heads = 2, .vocabulary = 7, .batch = 2, .time = 5};
  const auto change = [&](const GroupRules& groups, const std::string& name) {
    StepOptions options{.groups = groups};
    options.optimiser.name = OptimiserName::sgd;
    const TrainingStep step = build_training_step(model, options);
    CpuSession session(step.plan);
    initialise(session, step.parameters, 1, 0);
    const ControlBlock wide = control_block(options.optimiser, 0.1, 1, 1);
    session.write<float>("control", std::vector<float>(wide.begin(), wide.end()), 0);
    const std::span<float> weight = session.tensor<float>(name);
    const std::vector<float> before(weight.begin(), weight.end());
    session.run();
    double square = 0;
    for (std::size_t i = 0; i < before.size(); ++i) square += std::pow(weight[i] - before[i], 2);
    return std::sqrt(square);
  };
  const GroupRules rules{.lr = {{"head*", 0}, {"layers.0.ffn.*", 0.5}}, .decay = {}, .eps = {}};
  EXPECT_GT(change({}, "head.weight"), 0);
  EXPECT_EQ(change(rules, "head.weight"), 0);
  EXPECT_NEAR(change(rules, "layers.0.ffn.out.weight") / change({}, "layers.0.ffn.out.weight"), 0.5, 1e-5);
  EXPECT_NEAR(change(rules, "layers.0.attn.out.weight") / change({}, "layers.0.attn.out.weight"), 1, 1e-5);
}

TEST(Groups, SurviveTheConfiguration) {
  RunConfig config = parse_config("[groups.lr]\n\"layers.*.ffn.*\" = 0.5\nembedding = 2\n", "test");
  override_config(config, "groups.decay.norm=1");
  EXPECT_EQ(config.groups.lr.at("layers.*.ffn.*"), 0.5);
  EXPECT_EQ(config.groups.decay.at("norm"), 1);
  const std::string text = print_config(config);
  EXPECT_NE(text.find("[groups.lr]\nembedding = 2.0\n\"layers.*.ffn.*\" = 0.5\n"), std::string::npos) << text;
  EXPECT_EQ(print_config(parse_config(text, "printed")), text);
  EXPECT_TRUE(is_config_key("groups.eps.head"));
  EXPECT_FALSE(is_config_key("groups.head"));
  EXPECT_EQ(test::error_of([] { parse_config("groups.lr.head = -1", "run.toml"); }),
            "run.toml: groups.lr.head: -1 was given; expected a number from 0 to 1000000");
}

}  // namespace
}  // namespace norma
