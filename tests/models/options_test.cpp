// Options of branches, given by a scheme's file, inside a call, or by the model; and norms by name.
#include <set>

#include "models/model_check.h"

namespace norma {
namespace {

using test::tiny;

std::set<std::string> names_of(const ModelConfig& config) {
  Graph graph;
  std::set<std::string> names;
  for (const ParameterSpec& spec : build_model(graph, config).parameters) names.insert(spec.name);
  return names;
}

double loss_of(const std::string& scheme) { return test::initial_loss(tiny("decoder", scheme, DType::f64)); }

Stack build(Graph& graph, const char* toml) {
  Parameters parameters(graph, DType::f64);
  const Wire x = graph.input("x", {{2, 5, 8}, DType::f64});
  return build_stack(parameters, parse_scheme("mine", toml), {.branches = transformer_layer(), .layers = 2, .heads = 2},
                     x);
}

TEST(Options, InsideACallMeanWhatTheyMeanInAFile) {
  EXPECT_EQ(loss_of("x + f(norm(x), q = \"norm\", k = \"norm\")"), [] {
    ModelConfig config = tiny("decoder", "x + f(norm(x))", DType::f64);
    config.qk_norm = "norm";
    return test::initial_loss(config);
  }());
  EXPECT_NE(loss_of("x + f(norm(x), scale = 2*heads/d)"), loss_of("x + f(norm(x))"));
}

TEST(Options, ReplaceThoseOfTheFile) {
  Graph graph;
  build(graph,
        "layer = \"x + attn(norm(x), q = \\\"rmsnorm\\\") + ffn(norm(x), inner = \\\"layernorm\\\")\"\n"
        "[branch.attention]\nq = \"layernorm\"\nk = \"layernorm\"");
  EXPECT_TRUE(graph.find("layers.0.attn.q_norm.gain"));
  EXPECT_FALSE(graph.find("layers.0.attn.q_norm.bias")) << "RMSNorm has none";
  EXPECT_TRUE(graph.find("layers.0.attn.k_norm.bias"));
  EXPECT_EQ(graph.find("layers.1.ffn.inner_norm.gain").shape(), Shape{32});
}

TEST(Options, MistakesAreNamed) {
  const auto error = [](const char* toml) {
    return test::error_of([&] {
      Graph graph;
      build(graph, toml);
    });
  };
  EXPECT_EQ(error("layer = \"x + attn(x, inne = \\\"norm\\\") + ffn(x)\""),
            "scheme 'mine': attention has no option 'inne' (did you mean 'inner'?)\n"
            "  x + attn(x, inne = \"norm\") + ffn(x)\n"
            "              ^^^^^^^^^^^^^");
  EXPECT_EQ(error("layer = \"x + attn(x) + ffn(x, q = \\\"norm\\\")\""),
            "scheme 'mine': ffn has no option 'q'\n"
            "  x + attn(x) + ffn(x, q = \"norm\")\n"
            "                       ^^^^^^^^^^");
  EXPECT_EQ(error("sublayer = \"x + f(x, q = \\\"rmsnrom\\\")\""),
            "scheme 'mine': 'rmsnrom' is not a norm; expected norm, layernorm, rmsnorm, dyt, ... (did you mean "
            "'rmsnorm'?)\n"
            "  x + f(x, q = \"rmsnrom\")\n"
            "           ^^^^^^^^^^^^^");
  EXPECT_EQ(error("sublayer = \"x + f(x, qq = \\\"rmsnorm\\\")\""),
            "scheme 'mine': attention has no option 'qq' (did you mean 'q'?)\n"
            "  x + f(x, qq = \"rmsnorm\")\n"
            "           ^^^^^^^^^^^^^^");
  EXPECT_EQ(error("sublayer = \"x + f(x, width = \\\"half\\\")\""),
            "scheme 'mine': width is 'half'; expected head or full\n"
            "  x + f(x, width = \"half\")\n"
            "           ^^^^^^^^^^^^^^");
  EXPECT_EQ(error("sublayer = \"x + f(x)\"\n[branch.attention]\nq = \"rmsnrom\""),
            "scheme 'mine', branch.attention.q: 'rmsnrom' is not a norm; expected norm, layernorm, rmsnorm, dyt, ... "
            "(did you mean 'rmsnorm'?)");
  EXPECT_EQ(error("sublayer = \"x + norm(x, eps = 1)\""),
            "scheme 'mine': norm has no argument named 'eps'\n"
            "  x + norm(x, eps = 1)\n"
            "      ^^^^^^^^^^^^^^^^");
}

TEST(Options, NormsGoByEitherName) {
  EXPECT_EQ(loss_of("x + f(norm(x), q = \"rms\")"), loss_of("x + f(norm(x), q = \"rmsnorm\")"));
}

TEST(Options, QkNormOfTheModelLeavesASchemesOwn) {
  ModelConfig config = tiny("encoder_decoder", "pre");
  config.qk_norm = "rmsnorm";
  const std::set<std::string> names = names_of(config);
  EXPECT_TRUE(names.contains("encoder.layers.0.attn.q_norm.gain"));
  EXPECT_TRUE(names.contains("decoder.layers.1.cross.k_norm.gain"));
  EXPECT_FALSE(names.contains("decoder.layers.1.cross.k_norm.bias"));
  config.scheme = "hybridnorm";
  EXPECT_TRUE(names_of(config).contains("decoder.layers.0.attn.q_norm.bias")) << "HybridNorm's is a LayerNorm";
}

TEST(Norms, ByNameInAFormula) {
  const std::set<std::string> names = names_of(tiny("decoder", "x + dyt(f(rmsnorm(x)))"));
  EXPECT_TRUE(names.contains("layers.0.attn.norm2.gain")) << "numbered as written: dyt is the first";
  EXPECT_TRUE(names.contains("layers.0.attn.norm1.alpha"));
  EXPECT_FALSE(names.contains("layers.0.attn.norm2.bias"));
  ModelConfig config = tiny("decoder", "x + f(norm(x))", DType::f64);
  config.norm = NormKind::dyt;
  EXPECT_EQ(test::initial_loss(config), loss_of("x + f(dyt(x))")) << "`norm` and `dyt` are then the same";
}

TEST(Branches, CalledTwiceWithOneInputAreOneWire) {
  Graph once, twice;
  build(once, "sublayer = \"x + f(x)\"");
  build(twice, "sublayer = \"x + 0.5*f(x) + 0.5*f(x)\"");
  const auto attentions = [](const Graph& graph) {
    return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                         [](const Node& node) { return node.op->name() == "attention"; });
  };
  EXPECT_EQ(attentions(once), 2);
  EXPECT_EQ(attentions(twice), 2);
}

}  // namespace
}  // namespace norma
