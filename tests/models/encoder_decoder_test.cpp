// Two stacks: budgets, names, masks, and constants that differ between encoder and decoder.
#include <cmath>
#include <set>

#include "models/model_check.h"
#include "norma/models/budget.h"

namespace norma {
namespace {

using test::fill_inputs;
using test::tiny;

ModelConfig base(const std::string& scheme, std::int64_t layers = 6, std::int64_t encoder_layers = 0) {
  ModelConfig config{.family = "encoder_decoder", .layers = layers, .width = 512, .heads = 8};
  config.encoder_layers = encoder_layers;
  config.vocabulary = 100;
  config.scheme = scheme;
  return config;
}

const ParameterSpec& spec_of(const std::vector<ParameterSpec>& specs, const std::string& name) {
  for (const ParameterSpec& spec : specs) {
    if (spec.name == name) return spec;
  }
  throw std::runtime_error("no parameter " + name);
}

std::vector<ParameterSpec> specs_of(const ModelConfig& config) {
  Graph graph;
  return build_model(graph, config).parameters;
}

TEST(EncoderDecoder, NormsOfTheBaseModel) {
  const Budget post = model_budget(base("post")), pre = model_budget(base("pre"));
  EXPECT_EQ(post.norm_instances, 30);
  EXPECT_EQ(post.norm_parameters, 30720);
  EXPECT_EQ(pre.norm_instances, 32) << "both stacks end in a norm";
  EXPECT_EQ(pre.norm_parameters, 32768);
  EXPECT_EQ(pre.by_role.at("norm"), 32768);
}

TEST(EncoderDecoder, ParametersAreNamedByStack) {
  std::set<std::string> names;
  for (const ParameterSpec& spec : specs_of(tiny("encoder_decoder", "pre"))) names.insert(spec.name);
  for (const char* name : {"embedding.source", "embedding.token", "embedding.source_position", "embedding.position",
                           "encoder.layers.2.attn.qkv.weight", "encoder.final.norm1.gain",
                           "decoder.layers.1.cross.q.weight", "decoder.layers.1.cross.kv.bias",
                           "decoder.layers.0.cross.norm1.gain", "decoder.final.norm1.bias", "head.weight"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_FALSE(names.contains("encoder.layers.0.cross.q.weight"));
  EXPECT_FALSE(names.contains("decoder.layers.2.attn.qkv.weight")) << "the decoder has two layers";
}

TEST(EncoderDecoder, SitesFollowTheOrderOfSublayers) {
  Graph graph;
  const Model model = build_model(graph, tiny("encoder_decoder", "pre"));
  ASSERT_EQ(model.sites.size(), 3u * 2 + 2 * 3);
  EXPECT_EQ(model.sites[0].name, "encoder.layers.0.attn");
  EXPECT_EQ(model.sites[7].name, "decoder.layers.0.cross");
  EXPECT_EQ(model.sites[7].stream_in, model.sites[6].stream_out);
  EXPECT_EQ(model.sites[11].name, "decoder.layers.1.ffn");
}

// Runs a model twice, changing something in between; returns the largest change of each row of the hidden state.
std::vector<double> change(const ModelConfig& config, const std::function<void(CpuSession&)>& edit) {
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("hidden", model.hidden);
  CpuSession session(test::plain_plan(graph));
  initialise(session, model.parameters, 1);
  fill_inputs(session, config);
  session.run();
  const std::vector<double> before(session.tensor<double>("hidden").begin(), session.tensor<double>("hidden").end());
  edit(session);
  session.run();
  const std::span<double> after = session.tensor<double>("hidden");
  std::vector<double> rows(before.size() / static_cast<std::size_t>(config.width));
  for (std::size_t i = 0; i < before.size(); ++i) {
    double& row = rows[i / static_cast<std::size_t>(config.width)];
    row = std::max(row, std::abs(after[i] - before[i]));
  }
  return rows;
}

TEST(EncoderDecoder, PaddingOfTheSourceChangesNothing) {
  for (const char* scheme : {"pre", "realformer", "subln", "hc_dynamic"}) {
    const ModelConfig config = tiny("encoder_decoder", scheme, DType::f64);
    const auto source_of = [&](CpuSession& session, std::size_t sample, std::size_t at) -> std::int32_t& {
      return session.tensor<std::int32_t>("source")[sample * static_cast<std::size_t>(config.source_time) + at];
    };
    // Sample 1 has five of seven tokens.
    const auto padded = change(config, [&](CpuSession& session) { source_of(session, 1, 5) ^= 1; });
    for (const double row : padded) EXPECT_EQ(row, 0) << scheme;
    const auto seen = change(config, [&](CpuSession& session) { source_of(session, 1, 4) ^= 1; });
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i] > 0, i / 9 == 1) << scheme << " row " << i;
  }
}

TEST(EncoderDecoder, DecoderSeesNoLaterTokenAndOnlyItsOwnSample) {
  for (const char* scheme : {"post", "realformer", "parallel"}) {
    const auto rows = change(tiny("encoder_decoder", scheme, DType::f64),
                             [](CpuSession& session) { session.tensor<std::int32_t>("tokens")[2 * 9 + 4] ^= 1; });
    for (std::size_t i = 0; i < rows.size(); ++i)
      EXPECT_EQ(rows[i] > 0, i / 9 == 2 && i % 9 >= 4) << scheme << " row " << i;
  }
}

TEST(Encoder, SeesItsWholeSampleButNoPadding) {
  const ModelConfig config = tiny("encoder", "post", DType::f64);
  // Sample 2 has five of nine tokens.
  const auto inside =
      change(config, [](CpuSession& session) { session.tensor<std::int32_t>("tokens")[2 * 9 + 4] ^= 1; });
  for (std::size_t i = 0; i < inside.size(); ++i) EXPECT_EQ(inside[i] > 0, i / 9 == 2) << i;
  const auto outside =
      change(config, [](CpuSession& session) { session.tensor<std::int32_t>("tokens")[2 * 9 + 5] ^= 1; });
  for (std::size_t i = 0; i < outside.size(); ++i) EXPECT_EQ(outside[i] > 0, i == 2 * 9 + 5) << i;
}

TEST(Encoder, ClassifierReadsTheMeanOfASamplesTokens) {
  ModelConfig config = tiny("encoder", "pre", DType::f64);
  config.classes = 5;
  const auto rows = change(config, [](CpuSession& session) { session.tensor<std::int32_t>("tokens")[2 * 9 + 5] ^= 1; });
  ASSERT_EQ(rows.size(), 4u) << "one row per sample";
  for (const double row : rows) EXPECT_EQ(row, 0) << "padding counts for nothing";
}

double xavier(double in, double out) { return std::sqrt(2 / (in + out)); }

TEST(DeepNorm, InitialGainsOfTheThreeArchitectures) {
  const double d = 512, n = 12, m = 6;
  const auto value_gain = [&](const ModelConfig& config, const std::string& name, std::size_t block) {
    return spec_of(specs_of(config), name).blocks.at(block).gain / xavier(d, d);
  };
  ModelConfig one{.family = "decoder", .layers = 12, .width = 512, .heads = 8, .scheme = "deepnorm"};
  EXPECT_NEAR(value_gain(one, "layers.0.attn.qkv.weight", 2), std::pow(8 * n, -0.25), 1e-12);
  EXPECT_NEAR(value_gain(one, "layers.0.attn.qkv.weight", 0), 1, 1e-12) << "queries keep gain 1";
  one.family = "encoder";
  EXPECT_NEAR(value_gain(one, "layers.11.attn.out.weight", 0), std::pow(8 * n, -0.25), 1e-12);
  const ModelConfig both = base("deepnorm", 6, 12);
  const double below = 0.87 * std::pow(std::pow(n, 4) * m, -1.0 / 16), above = std::pow(12 * m, -0.25);
  EXPECT_NEAR(value_gain(both, "encoder.layers.3.attn.qkv.weight", 2), below, 1e-12);
  EXPECT_NEAR(value_gain(both, "decoder.layers.3.attn.qkv.weight", 2), above, 1e-12);
  EXPECT_NEAR(value_gain(both, "decoder.layers.3.cross.kv.weight", 1), above, 1e-12) << "values of cross-attention too";
  EXPECT_NEAR(value_gain(both, "decoder.layers.3.cross.kv.weight", 0), 1, 1e-12);
  EXPECT_NEAR(value_gain(both, "decoder.layers.3.cross.out.weight", 0), above, 1e-12);
}

TEST(SubLn, CrossAttentionHasNeitherInnerNormNorGain) {
  const std::vector<ParameterSpec> specs = specs_of(base("subln", 6, 12));
  std::set<std::string> names;
  for (const ParameterSpec& spec : specs) names.insert(spec.name);
  EXPECT_TRUE(names.contains("decoder.layers.0.attn.inner_norm.gain"));
  EXPECT_FALSE(names.contains("decoder.layers.0.cross.inner_norm.gain"));
  const auto gain = [&](const char* name, std::size_t block) {
    return spec_of(specs, name).blocks.at(block).gain / xavier(512, 512);
  };
  EXPECT_NEAR(gain("decoder.layers.0.cross.kv.weight", 1), 1, 1e-12);
  EXPECT_NEAR(gain("decoder.layers.0.attn.qkv.weight", 2), std::sqrt(std::log(3.0 * 6)), 1e-12);
  EXPECT_NEAR(gain("encoder.layers.0.attn.qkv.weight", 2), std::sqrt(std::log(3.0 * 6) * std::log(2.0 * 12) / 3),
              1e-12);
}

TEST(AdminTorch, CountsSublayersOfItsOwnStack) {
  const std::vector<ParameterSpec> specs = specs_of(base("admin_torch", 6, 12));
  const auto omega = [](double n) { return std::sqrt((n + 1) / std::log(n + 1) - 1); };
  EXPECT_NEAR(spec_of(specs, "encoder.layers.5.ffn.omega").init.value, omega(2 * 12), 1e-12);
  EXPECT_NEAR(spec_of(specs, "decoder.layers.5.cross.omega").init.value, omega(3 * 6), 1e-12);
}

TEST(EncoderDecoder, DepthInAFormulaIsThatOfTheStackAtHand) {
  ModelConfig layerscale = base("layerscale", 6, 24);
  const std::vector<ParameterSpec> specs = specs_of(layerscale);
  EXPECT_EQ(spec_of(specs, "encoder.layers.0.attn.g").init.value, 1e-5);
  EXPECT_EQ(spec_of(specs, "decoder.layers.0.attn.g").init.value, 0.1);
}

TEST(EncoderDecoder, SchemesWithoutAFormulaForCrossAttentionSayWhatIsMissing) {
  const Scheme scheme = parse_scheme("mine", "attention = \"x + f(x)\"\nffn = \"x + f(x)\"");
  Graph graph;
  Parameters parameters(graph, DType::f32);
  const Wire x = graph.input("x", {{2, 3, 8}, DType::f32}), memory = graph.input("memory", {{2, 5, 8}, DType::f32});
  const StackConfig config{.branches = transformer_layer(Memory::present),
                           .layers = 1,
                           .heads = 2,
                           .kind = StackKind::decoder,
                           .other_layers = 1,
                           .memory = memory};
  EXPECT_EQ(
      test::error_of([&] { build_stack(parameters, scheme, config, x); }),
      "scheme 'mine' has no formula for decoders with cross-attention; a file can give cross beside attention and ffn");
}

}  // namespace
}  // namespace norma
