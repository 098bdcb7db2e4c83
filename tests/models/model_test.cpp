// Models as a whole: logits and loss, ties, operations counted two ways, and configurations that make no sense.
#include "norma/models/model.h"

#include <cmath>
#include <set>

#include "models/model_check.h"

namespace norma {
namespace {

using test::tiny;

TEST(Model, LossIsThatOfItsLogits) {
  for (const bool tied : {false, true}) {
    for (const char* scheme : {"pre", "ngpt", "completep"}) {
      SCOPED_TRACE(scheme);
      ModelConfig config = tiny("decoder", scheme, DType::f64);
      config.tied = tied;
      Graph graph;
      const Model model = build_model(graph, config, {.logits = true});
      graph.output("logits", model.logits);
      graph.output("loss", model.loss);
      CpuSession session(test::plain_plan(graph));
      initialise(session, model.parameters, 1);
      test::fill_inputs(session, config);
      const std::span<std::int32_t> targets = session.tensor<std::int32_t>("targets");
      targets[3] = -100;  // not counted
      session.run();
      double sum = 0;
      for (std::size_t row = 0; row < targets.size(); ++row) {
        if (row == 3) continue;
        const std::span<double> z = session.tensor<double>("logits").subspan(row * 17, 17);
        double total = 0;
        for (const double v : z) total += std::exp(v);
        sum += std::log(total) - z[static_cast<std::size_t>(targets[row])];
      }
      EXPECT_NEAR(session.tensor<double>("loss")[0], sum / static_cast<double>(targets.size() - 1), 1e-12);
    }
  }
}

// Six operations per weight and row that it multiplies, and the pairs of attention.
TEST(Model, OperationsAgreeWithTheWeights) {
  const double d = 24, batch = 4, time = 9, source = 7, context = 2 * d * 3 * 2;
  const auto weights = [](const ModelConfig& config, const std::string& part) {
    Graph graph;
    double sum = 0;
    for (const ParameterSpec& spec : build_model(graph, config).parameters) {
      const Shape& shape = graph.find(spec.name).shape();
      const bool matrix = spec.name.ends_with(".weight") && spec.name.find(part) != std::string::npos;
      if (matrix) sum += static_cast<double>(shape.elements());
    }
    return sum;
  };
  ModelConfig config = tiny("decoder", "pre");
  config.kv_heads = 1;
  config.gated = true;
  EXPECT_NEAR(model_flops(config), batch * time * (6 * weights(config, "") + 3 * context * (time + 1) / 2), 1e-6);
  config = tiny("encoder", "pre");
  EXPECT_NEAR(model_flops(config), batch * time * (6 * weights(config, "") + 3 * context * time), 1e-6);
  config = tiny("encoder_decoder", "pre");
  const double cross = weights(config, "cross."), values = weights(config, "cross.kv.");
  const double expected = batch * source * (6 * weights(config, "encoder.") + 3 * context * source) +
                          batch * time *
                              (6 * (weights(config, "decoder.") - values + weights(config, "head.")) +
                               2 * context * ((time + 1) / 2 + source)) +
                          batch * source * 6 * values;
  EXPECT_GT(cross, values);
  EXPECT_NEAR(model_flops(config), expected, 1e-6);
}

TEST(Model, OperationsFollowTheFormula) {
  const auto traced = [](Family family, const std::string& scheme) {
    Graph graph;
    const Model model = build_model(graph, tiny(family, scheme));
    return traced_flops(graph, model.loss);
  };
  for (const Family family : {"decoder", "encoder", "encoder_decoder"}) {
    for (const char* plain : {"pre", "post", "deepnorm", "parallel", "x + f(norm(x))"})
      EXPECT_NEAR(traced(family, plain), model_flops(tiny(family, plain)), 1e-6) << plain;
  }
  const double all = model_flops(tiny("decoder", "pre")), head = 3 * 2.0 * 4 * 9 * 24 * 17, stack = all - head;
  EXPECT_NEAR(traced("decoder", "x + f(f(norm(x)))"), head + 2 * stack, 1e-6);
  EXPECT_NEAR(traced("decoder", "x + f(norm(x)) + f(norm(x))"), head + 2 * stack, 1e-6) << "two different norms";
  EXPECT_NEAR(traced("decoder", "x*2"), head, 1e-6);
  EXPECT_NEAR(traced("decoder", "y = f(x); x*2"), head, 1e-6) << "nobody reads y";
  // Per sublayer and token a weighted sum of four copies and a mixer of four by four.
  EXPECT_NEAR(traced("decoder", "hc_static"), all + 3 * 2.0 * 4 * 9 * 6 * 24 * (4 + 4 * 4), 1e-6);
  const double mhc = traced("decoder", "mhc"), dynamic = traced("decoder", "hc_dynamic");
  EXPECT_GT(dynamic, traced("decoder", "hc_static"));
  EXPECT_GT(mhc, dynamic) << "one projection of all copies";
}

TEST(Model, DropoutIsInsideEachBranchAndOnEmbeddings) {
  ModelConfig config = tiny("encoder_decoder", "pre");
  config.dropout = true;
  Graph graph;
  build_model(graph, config);
  const auto count = std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                   [](const Node& node) { return node.op->name() == "dropout"; });
  EXPECT_EQ(count, 3 * 2 + 2 * 3 + 2);
  std::set<std::string> sites;
  for (const Node& node : graph.nodes()) {
    if (node.op->name() == "dropout") sites.insert(node.op->attributes());
  }
  EXPECT_EQ(sites.size(), static_cast<std::size_t>(count)) << "each has a random stream of its own";
}

TEST(Model, SitesOfAFormulaForAWholeLayer) {
  Graph graph;
  const Model model = build_model(graph, tiny("decoder", "parallel"));
  ASSERT_EQ(model.sites.size(), 6u);
  EXPECT_EQ(model.sites[2].name, "layers.1.attn");
  EXPECT_EQ(model.sites[3].name, "layers.1.ffn");
  EXPECT_EQ(model.sites[2].stream_in, model.sites[3].stream_in);
  EXPECT_EQ(model.sites[2].stream_out, model.sites[3].stream_out);
  EXPECT_EQ(model.sites[2].stream_in, model.sites[1].stream_out);
  EXPECT_NE(model.sites[2].branch, model.sites[3].branch);
}

TEST(Model, FamiliesAreReadAsTheyAreWritten) {
  for (const FamilyRow& row : families()) EXPECT_EQ(Family(row.name).operator->(), &row);
  EXPECT_EQ(Family("encoder-decoder"), "encoder_decoder");
  EXPECT_EQ(test::error_of([] { Family("encoderdecoder"); }),
            "there is no family 'encoderdecoder' (did you mean 'encoder_decoder'?); expected " + family_names());
  EXPECT_TRUE(family_names().starts_with("decoder, encoder, ")) << family_names();
}

TEST(Model, BadConfigurationsAreNamed) {
  const auto error = [](auto change) {
    ModelConfig config = tiny("decoder", "pre");
    change(config);
    return test::error_of([&] {
      Graph graph;
      build_model(graph, config);
    });
  };
  EXPECT_EQ(error([](ModelConfig& c) { c.layers = 0; }), "a stack needs at least one layer, but 0 were asked for");
  EXPECT_EQ(error([](ModelConfig& c) { c.heads = 7; }), "width 24 is not divisible by 7 heads");
  EXPECT_EQ(error([](ModelConfig& c) { c.heads = 0; }), "attention needs at least one head, not 0 and 0");
  EXPECT_EQ(error([](ModelConfig& c) { c.batch = 0; }), "batch is 0; expected at least 1");
  EXPECT_EQ(error([](ModelConfig& c) { c.hidden = -1; }), "hidden is -1; expected 0 or more");
  EXPECT_EQ(error([](ModelConfig& c) { c.classes = 3; }), "classes are for encoders; another family predicts tokens");
  EXPECT_EQ(test::error_of([] { tiny("decoder", "prenorm"); }).substr(0, 34), "there is no scheme named 'prenorm'")
      << "where it is given";
  EXPECT_EQ(error([](ModelConfig& c) {
              c.scheme = "ngpt";
              c.kv_heads = 1;
            }),
            "a gain shared by queries and keys needs as many of both, but there are 3 and 1 heads");
}

}  // namespace
}  // namespace norma
