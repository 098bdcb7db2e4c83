// What schemes tell the optimiser and how they start weights: CompleteP, depth-muP, T-Fixup, GPT-2.
#include "norma/models/rules.h"

#include <cmath>
#include <set>

#include "models/model_check.h"
#include "norma/graph/differentiate.h"
#include "plain_plan.h"

namespace norma {
namespace {

std::map<std::string, ParameterSpec> specs_by_name(const ModelConfig& config) {
  Graph graph;
  std::map<std::string, ParameterSpec> specs;
  for (const ParameterSpec& spec : build_model(graph, config).parameters) specs[spec.name] = spec;
  return specs;
}

struct Factors {
  double lr, eps, decay;
};
void expect_factors(const ParameterSpec& spec, const Factors& expected) {
  EXPECT_NEAR(spec.lr, expected.lr, 1e-12) << spec.name;
  EXPECT_NEAR(spec.eps, expected.eps, 1e-12) << spec.name;
  EXPECT_NEAR(spec.decay, expected.decay, 1e-12) << spec.name;
}

// Table 1 of CompleteP with m_N = 4 and m_L = 8, written out.
TEST(Rules, DepthParameterisations) {
  ModelConfig config{.layers = 16, .width = 256, .heads = 4};
  config.constants = {{"base_width", 64}, {"base_depth", 2}};
  for (const auto& [scheme, alpha] : {std::pair{"depth_mup", 0.5}, {"completep", 1.0}}) {
    SCOPED_TRACE(scheme);
    config.scheme = scheme;
    const auto specs = specs_by_name(config);
    const double width = 4, depth = 8, eps = 1 / (width * std::pow(depth, alpha));
    const double hidden = std::pow(depth, alpha - 1) / width, thin = std::pow(depth, alpha - 1);
    expect_factors(specs.at("layers.3.attn.qkv.weight"), {hidden, eps, width});
    expect_factors(specs.at("layers.3.ffn.out.weight"), {hidden, eps, width});
    expect_factors(specs.at("layers.3.attn.qkv.bias"), {thin, eps, 1});
    expect_factors(specs.at("layers.3.ffn.norm1.gain"), {thin, eps, 1});
    expect_factors(specs.at("final.norm1.gain"), {1, 1, 1});
    expect_factors(specs.at("embedding.token"), {1, 1, 1});
    expect_factors(specs.at("head.weight"), {1, 1, 1});
  }
}

TEST(Rules, WithoutABaseOnlyDepthCounts) {
  ModelConfig config{.layers = 4, .width = 64, .heads = 4, .scheme = "depth_mup"};
  expect_factors(specs_by_name(config).at("layers.0.attn.out.weight"), {0.5, 0.5, 1});
  config.scheme = "completep";
  expect_factors(specs_by_name(config).at("layers.0.attn.out.weight"), {1, 0.25, 1});
}

TEST(Rules, UnembeddingIsDividedByTheWidthRatio) {
  ModelConfig config = test::tiny("decoder", "completep", DType::f64);
  const auto logits = [&](double base_width) {
    config.constants = {{"base_width", base_width}};
    Graph graph;
    const Model model = build_model(graph, config, {.logits = true});
    graph.output("logits", model.logits);
    CpuSession session(test::plain_plan(graph));
    initialise(session, model.parameters, 1);
    test::fill_inputs(session, config);
    session.run();
    return std::vector<double>(session.tensor<double>("logits").begin(), session.tensor<double>("logits").end());
  };
  const std::vector<double> plain = logits(24), divided = logits(6);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(divided[i], plain[i] / 4, 1e-12);
}

TEST(Rules, GivenConstantsMustExist) {
  ModelConfig config{.scheme = "completep", .constants = {{"base_widht", 64}}};
  EXPECT_EQ(test::error_of([&] { specs_by_name(config); }),
            "scheme 'completep' has no constant named 'base_widht' (did you mean 'base_width'?)");
}

TEST(Rules, TFixupStartsTablesAndWeights) {
  ModelConfig config{.family = "encoder_decoder", .layers = 6, .width = 512, .heads = 8, .scheme = "tfixup"};
  config.encoder_layers = 12;
  config.source_vocabulary = 100;
  const auto specs = specs_by_name(config);
  const double n = 12, m = 6, xavier = std::sqrt(2.0 / 1024);
  EXPECT_NEAR(specs.at("embedding.source").init.value, std::pow(512, -0.5) * std::pow(9 * n, -0.25), 1e-12);
  EXPECT_NEAR(specs.at("embedding.token").init.value, std::pow(512, -0.5) * std::pow(9 * m, -0.25), 1e-12);
  EXPECT_NEAR(specs.at("encoder.layers.0.attn.qkv.weight").blocks[2].gain, 0.67 * std::pow(n, -0.25) * xavier, 1e-12);
  EXPECT_NEAR(specs.at("decoder.layers.0.cross.kv.weight").blocks[1].gain, std::pow(9 * m, -0.25) * xavier, 1e-12);
  EXPECT_NEAR(specs.at("decoder.layers.0.cross.q.weight").blocks[0].gain, xavier, 1e-12);
  config.source_vocabulary = 0;
  EXPECT_NEAR(specs_by_name(config).at("embedding.token").init.value, std::pow(512, -0.5) * std::pow(9 * n, -0.25),
              1e-12)
      << "one table for both sides follows the encoder";
}

TEST(Rules, Gpt2ScalesBothOutputProjections) {
  const auto specs = specs_by_name({.layers = 8, .width = 64, .heads = 4, .scheme = "pre_gpt2"});
  EXPECT_NEAR(specs.at("layers.0.attn.qkv.weight").blocks[0].gain, 0.02, 1e-12);
  EXPECT_NEAR(specs.at("layers.0.ffn.in.weight").blocks[0].gain, 0.02, 1e-12);
  for (const char* name : {"layers.0.attn.out.weight", "layers.0.ffn.out.weight"})
    EXPECT_NEAR(specs.at(name).blocks[0].gain, 0.02 / 4, 1e-12) << name;
}

TEST(Rules, PositionsStartAsTheSchemeSays) {
  const auto positions = [](const char* scheme) {
    ModelConfig config{.layers = 12, .width = 64, .heads = 4, .scheme = scheme};
    config.embedding_std = 1;  // as studies have it
    return specs_by_name(config).at("embedding.position").init.value;
  };
  EXPECT_NEAR(positions("pre"), 1, 1e-12);
  EXPECT_NEAR(positions("pre_gpt2"), 0.02, 1e-12);
  EXPECT_NEAR(positions("ngpt"), 1.0 / 8, 1e-12);
  EXPECT_NEAR(positions("tfixup"), 1.0 / 8, 1e-12) << "the gain is of tokens alone";
}

// The rms of what enters the first layer, where tokens are drawn with deviation 1 and there are no positions.
double entering(const std::string& scheme, bool scaled) {
  ModelConfig config = test::tiny("decoder", scheme, DType::f64);
  config.positions = Positions::none;
  config.vocabulary = 400;
  config.scale_embedding = scaled;
  config.embedding_std = 1;
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("in", model.sites[0].stream_in * 1.0);
  CpuSession session(test::plain_plan(graph));
  initialise(session, model.parameters, 1);
  test::fill_inputs(session, config);
  session.run();
  double square = 0;
  const std::span<double> in = session.tensor<double>("in");
  for (const double x : in) square += x * x / static_cast<double>(in.size());
  return std::sqrt(square);
}

TEST(Rules, TokensAreScaledOnceAndAsTheSchemeSays) {
  for (const bool scaled : {false, true}) {
    EXPECT_NEAR(entering("pre", scaled), scaled ? std::sqrt(24) : 1, 0.4);
    EXPECT_NEAR(entering("tfixup", scaled), std::pow(27, -0.25), 0.05) << "sqrt(d) is kept";
    EXPECT_NEAR(entering("gemma2", scaled), 1, 0.1);
    EXPECT_NEAR(entering("dyt", scaled), 1, 0.1) << "by its own factor";
  }
}

TEST(Rules, ReleasedInitialWeights) {
  const auto gain = [](const char* scheme, const char* name) {
    return specs_by_name({.layers = 4, .width = 64, .heads = 4, .scheme = scheme}).at(name).blocks[0].gain;
  };
  const double xavier = std::sqrt(2.0 / 128), wide = std::sqrt(2.0 / (64 * 5));
  EXPECT_NEAR(gain("b2t", "layers.0.attn.out.weight"), xavier / 2, 1e-12);
  EXPECT_NEAR(gain("b2t", "layers.3.ffn.in.weight"), wide / 2, 1e-12);
  for (const char* scheme : {"hybridnorm", "hybridnorm_star"}) {
    EXPECT_NEAR(gain(scheme, "layers.0.attn.qkv.weight"), 1 / std::sqrt(2.5 * 64), 1e-12) << scheme;
    EXPECT_NEAR(gain(scheme, "layers.0.ffn.in.weight"), 1 / std::sqrt(2.5 * 64), 1e-12) << scheme;
    EXPECT_NEAR(gain(scheme, "layers.0.ffn.out.weight"), 1 / std::sqrt(2.5 * 64 * 8), 1e-12) << scheme;
  }
}

// One that a formula does not read somewhere does not exist there.
TEST(Rules, LearnedValuesAreMadeWhereTheyAreUsed) {
  const auto names = [](const std::string& toml) {
    SchemeLibrary library;
    library.put("mine", toml, SchemeLibrary::Rank::first);
    ModelConfig config{.layers = 2, .width = 16, .heads = 2};
    config.scheme = library.find("mine");
    std::set<std::string> learned;
    Graph graph;
    const Model model = build_model(graph, config);
    Wires parameters;
    for (const ParameterSpec& spec : model.parameters) {
      parameters.push_back(graph.find(spec.name));
      if (spec.role == "learned") learned.insert(spec.name);
    }
    differentiate(model.loss, parameters);  // throws for what the loss does not depend on
    return learned;
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(names("attention = \"x + g*f(norm(x))\"\nffn = \"x + f(norm(x))\"\n[learned]\ng = { init = 1 }\n"),
            (Names{"layers.0.attn.g", "layers.1.attn.g"}));
  EXPECT_EQ(names("sublayer = \"if l > 1 then x + g*f(norm(x)) else x + f(norm(x))\"\n"
                  "[learned]\ng = { init = 1, per = \"layer\" }\n"),
            (Names{"layers.1.g"}));
  EXPECT_EQ(names("sublayer = \"if l > 7 then x + g*f(norm(x)) else x + f(norm(x))\"\n"
                  "[learned]\ng = { init = 1, per = \"stack\" }\n"),
            Names{});
  EXPECT_EQ(names("layer = \"if l > 1 then x + g*attn(x) + ffn(x) else x + attn(x) + ffn(x)\"\n"
                  "[learned]\ng = { init = 1 }\n"),
            (Names{"layers.1.g"}));
}

TEST(Rules, UniformWeightsHaveTheVarianceOfNormalOnes) {
  for (const WeightInit weights : {WeightInit::xavier_normal, WeightInit::xavier_uniform}) {
    ModelConfig config{.layers = 1, .width = 96, .heads = 4, .scheme = "deepnorm"};
    config.weights = weights;
    Graph graph;
    const Model model = build_model(graph, config);
    graph.output("loss", model.loss);
    CpuSession session(test::plain_plan(graph));
    initialise(session, model.parameters, 1);
    const std::span<float> in = session.tensor<float>("layers.0.ffn.in.weight");
    double squares = 0, largest = 0;
    for (const float w : in) {
      squares += static_cast<double>(w) * w;
      largest = std::max(largest, std::abs(static_cast<double>(w)));
    }
    const double beta = std::pow(8.0, -0.25), deviation = beta * std::sqrt(2.0 / (96 + 4 * 96));
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(in.size())), deviation, 0.02 * deviation);
    if (weights == WeightInit::xavier_uniform) {
      EXPECT_LE(largest, std::sqrt(3.0) * deviation);
    }
  }
}

TEST(Rules, OneMatrixCannotHaveTwoLearningRates) {
  const Scheme scheme = parse_scheme("mine", "sublayer = \"x + f(x)\"\n[lr]\nquery = 2");
  Graph graph;
  Parameters parameters(graph, DType::f32);
  const Wire x = graph.input("x", {{2, 3, 8}, DType::f32});
  EXPECT_EQ(test::error_of([&] {
              build_stack(parameters, scheme, {.branches = transformer_layer(), .layers = 1, .heads = 2}, x);
            }),
            "the rule lr gives 2 for query and 1 for key, which are one matrix");
}

}  // namespace
}  // namespace norma
