// Derivatives of whole models against finite differences: every scheme of the catalogue in every family.
#include "models/model_check.h"
#include "norma/backends/cpu.h"

namespace norma {
namespace {

using test::fill_inputs;
using test::tiny;

// Parameters whose gradient is zero by construction, or not the derivative of the value by intention.
bool excluded(const std::string& scheme, const std::string& name) {
  // The first sublayer of a stack chooses among one value: its weights are 1 whatever w is.
  const bool first = name.starts_with("layers.0.attn.") || name.find("coder.layers.0.attn.") != std::string::npos;
  return scheme.starts_with("attnres") && first && name.ends_with(".w");
}

using Case = std::tuple<Family, std::string>;
class Gradients : public testing::TestWithParam<Case> {};

TEST_P(Gradients, OfEveryParameterAreThoseOfTheLoss) {
  const auto& [family, scheme] = GetParam();
  ModelConfig config = tiny(family, scheme, DType::f64);
  config.smoothing = true;
  config.dropout = true;
  Graph names;
  const std::vector<ParameterSpec> specs = build_model(names, config).parameters;
  std::vector<std::string> parameters;
  for (const ParameterSpec& spec : specs) {
    if (!excluded(scheme, spec.name)) parameters.push_back(spec.name);
  }
  // Near the initial values, where schemes without norms are tame, but nowhere special: gains that start at 0 or 1
  // move. GPAS stops a gradient on purpose; its derivative is that of its value only where the gate g is 0.
  const bool normed = std::any_of(specs.begin(), specs.end(), [](const auto& spec) { return spec.role == "norm"; });
  const auto prepare = [&, s = scheme](CpuSession& session) {
    fill_inputs(session, config);
    initialise(session, specs, 1);
    for (const ParameterSpec& spec : specs) {
      if (s == "gpas" && spec.name.ends_with(".g")) continue;
      const RandomStream stream(2, spec.name);
      const std::span<double> tensor = session.tensor<double>(spec.name);
      const double distance = spec.role == "learned" || !normed ? 0.05 : 0.2;
      for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] += distance * stream.normal(i);
    }
  };
  test::check_gradients([&](Graph& g) { return build_model(g, config).loss; }, parameters,
                        {.most_elements = family == "decoder" ? 3 : 1, .fuse = true, .prepare = prepare});
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  return test::name_of(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Gradients,
                         testing::Combine(testing::Values("decoder", "encoder", "encoder_decoder"),
                                          testing::ValuesIn(test::catalogue_names())),
                         name_of_case);

// What a configuration may ask for beside a scheme.
struct Variant {
  const char* name;
  void (*change)(ModelConfig&);
};
class Variants : public testing::TestWithParam<Variant> {};

TEST_P(Variants, HaveTheRightGradients) {
  for (const Family family : {"decoder", "encoder_decoder"}) {
    ModelConfig config = tiny(family, "pre", DType::f64);
    GetParam().change(config);
    Graph names;
    const std::vector<ParameterSpec> specs = build_model(names, config).parameters;
    std::vector<std::string> parameters;
    for (const ParameterSpec& spec : specs) parameters.push_back(spec.name);
    const auto prepare = [&](CpuSession& session) {
      fill_inputs(session, config);
      initialise(session, specs, 1);
      for (const ParameterSpec& spec : specs) {
        const RandomStream stream(2, spec.name);
        const std::span<double> tensor = session.tensor<double>(spec.name);
        for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] += 0.2 * stream.normal(i);
      }
    };
    test::check_gradients([&](Graph& g) { return build_model(g, config).loss; }, parameters,
                          {.most_elements = 1, .fuse = true, .prepare = prepare});
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Variants,
                         testing::Values(Variant{"gated_silu",
                                                 [](ModelConfig& c) {
                                                   c.gated = true;
                                                   c.activation = Activation::silu;
                                                 }},
                                         Variant{"gated_gelu", [](ModelConfig& c) { c.gated = true; }},
                                         Variant{"rope",
                                                 [](ModelConfig& c) {
                                                   c.positions = Positions::rope;
                                                   c.heads = 2;
                                                 }},
                                         Variant{"sinusoidal",
                                                 [](ModelConfig& c) { c.positions = Positions::sinusoidal; }},
                                         Variant{"tied",
                                                 [](ModelConfig& c) {
                                                   c.tied = true;
                                                   c.scale_embedding = true;
                                                 }},
                                         Variant{"joint_vocabulary", [](ModelConfig& c) { c.source_vocabulary = 0; }},
                                         Variant{"grouped_queries",
                                                 [](ModelConfig& c) {
                                                   c.heads = 4;
                                                   c.kv_heads = 2;
                                                 }},
                                         Variant{"no_biases_rms",
                                                 [](ModelConfig& c) {
                                                   c.biases = false;
                                                   c.norm = NormKind::rms;
                                                 }},
                                         Variant{"qk_norm",
                                                 [](ModelConfig& c) {
                                                   c.qk_norm = "rmsnorm";
                                                   c.positions = Positions::rope;
                                                   c.heads = 2;
                                                 }},
                                         Variant{"carried_scores_grouped_rope",
                                                 [](ModelConfig& c) {
                                                   c.scheme = "realformer";
                                                   c.positions = Positions::rope;
                                                   c.heads = 4;
                                                   c.kv_heads = 2;
                                                 }},
                                         Variant{"full_width_norms_grouped",
                                                 [](ModelConfig& c) {
                                                   c.scheme = "olmo2";
                                                   c.heads = 4;
                                                   c.kv_heads = 2;
                                                 }},
                                         Variant{"uniform_scale_norm",
                                                 [](ModelConfig& c) {
                                                   c.weights = WeightInit::xavier_uniform;
                                                   c.norm = NormKind::scale;
                                                 }},
                                         Variant{"ngpt_gated",
                                                 [](ModelConfig& c) {
                                                   c.scheme = "ngpt";
                                                   c.gated = true;
                                                   c.activation = Activation::silu;
                                                   c.positions = Positions::rope;
                                                   c.heads = 2;
                                                 }}),
                         [](const auto& test) { return test.param.name; });

TEST(Gradients, OfAClassifier) {
  ModelConfig config = tiny("encoder", "post", DType::f64);
  config.classes = 5;
  Graph names;
  const std::vector<ParameterSpec> specs = build_model(names, config).parameters;
  std::vector<std::string> parameters;
  for (const ParameterSpec& spec : specs) parameters.push_back(spec.name);
  test::check_gradients([&](Graph& g) { return build_model(g, config).loss; }, parameters,
                        {.most_elements = 3, .fuse = true, .prepare = [&](CpuSession& session) {
                           fill_inputs(session, config);
                           initialise(session, specs, 1);
                         }});
}

}  // namespace
}  // namespace norma
