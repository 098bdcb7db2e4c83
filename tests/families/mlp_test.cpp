// A deep residual network of feed-forward branches: schemes by formula, gradients, the theory, and a task whose best
// score is known.
#include <cmath>

#include "models/model_check.h"
#include "norma/theory/predict.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"

namespace norma {
namespace {

using test::fill_inputs;
using test::tiny;

RunConfig parity_run(std::int64_t layers, const std::string& scheme) {
  RunConfig config;
  config.model.family = "mlp";
  config.model.layers = layers;
  config.model.width = 32;
  config.model.hidden = 64;
  config.model.batch = 128;
  config.model.scheme = scheme;
  config.train.lr = 3e-3;
  config.train.threads = 1;
  config.data.settings = {{"features", 6}, {"bits", 1}, {"separation", 2}};
  return config;
}

TEST(Mlp, LayersAreFeedForwardBranchesWiredByTheScheme) {
  Graph graph;
  ModelConfig config = tiny("mlp", "deepnorm");
  const Model model = build_model(graph, config);
  ASSERT_EQ(model.sites.size(), 3u);
  EXPECT_EQ(model.sites[2].name, "layers.2.ffn");
  EXPECT_EQ(graph.find("embedding.weight").shape(), (Shape{7, 24}));
  EXPECT_EQ(graph.find("layers.0.ffn.norm1.gain").shape(), Shape{24}) << "norm(alpha*x + f(x))";
  EXPECT_FALSE(graph.find("layers.0.attn.qkv.weight"));
  EXPECT_EQ(graph.find("head.weight").shape(), (Shape{24, 7}));
}

TEST(Mlp, ConstantsCountOneSublayerALayer) {
  // n is the number of sublayers: of an mlp as many as layers, of a decoder twice as many.
  const auto gain_at = [](Family family) {
    ModelConfig config = tiny(family, "pre");
    config.layers = 3;
    const StackSites sites = family->sites(config).back();
    const StackConfig stack{.branches = sites.branches, .layers = 3, .heads = 3, .kind = sites.kind};
    return stack_numbers(*config.scheme, stack, config.width, 3, 3).at("n");
  };
  EXPECT_EQ(gain_at("mlp"), 3);
  EXPECT_EQ(gain_at("decoder"), 6);
}

TEST(Mlp, EverySchemeForSublayersHasTheRightGradients) {
  int built = 0, refused = 0;
  for (const std::string& scheme : test::catalogue_names()) {
    SCOPED_TRACE(scheme);
    ModelConfig config = tiny("mlp", scheme, DType::f64);
    config.layers = 2;
    config.smoothing = config.dropout = true;
    std::vector<ParameterSpec> specs;
    try {
      Graph names;
      specs = build_model(names, config).parameters;
    } catch (const NotBuiltError& error) {
      EXPECT_NE(std::string(error.what()).find("no attention branch"), std::string::npos) << error.what();
      ++refused;
      continue;
    }
    ++built;
    std::vector<std::string> parameters;
    for (const ParameterSpec& spec : specs) {
      // The first sublayer of a stack chooses among one value: its weights are 1 whatever w is.
      const bool only = scheme.starts_with("attnres") && spec.name == "layers.0.ffn.w";
      if (!only) parameters.push_back(spec.name);
    }
    const bool normed = std::any_of(specs.begin(), specs.end(), [](const auto& spec) { return spec.role == "norm"; });
    const auto prepare = [&](CpuSession& session) {
      fill_inputs(session, config);
      initialise(session, specs, 1);
      for (const ParameterSpec& spec : specs) {
        if (scheme == "gpas" && spec.name.ends_with(".g")) continue;  // it stops a gradient on purpose
        const RandomStream stream(2, spec.name);
        const std::span<double> tensor = session.tensor<double>(spec.name);
        const double distance = spec.role == "learned" || !normed ? 0.05 : 0.2;
        for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] += distance * stream.normal(i);
      }
    };
    test::check_gradients([&](Graph& g) { return build_model(g, config).loss; }, parameters,
                          {.most_elements = 1, .fuse = true, .prepare = prepare});
  }
  EXPECT_GT(built, 20);
  EXPECT_GT(refused, 0);
}

TEST(Mlp, MistakesAreNamed) {
  const auto error = [](auto change) {
    ModelConfig config = tiny("mlp", "pre");
    change(config);
    return test::error_of([&] {
      Graph graph;
      build_model(graph, config);
    });
  };
  EXPECT_EQ(error([](ModelConfig& c) { c.sizes.clear(); }),
            "model.sizes.features is not given; expected the numbers of a sample");
  EXPECT_EQ(error([](ModelConfig& c) { c.sizes["feature"] = 3; }),
            "model.sizes.feature: the family mlp has no such size (did you mean 'features'?); expected features");
  EXPECT_EQ(error([](ModelConfig& c) { c.classes = 1; }), "classes is 1; an mlp is a classifier and needs at least 2");
  EXPECT_NE(error([](ModelConfig& c) { c.scheme = "parallel"; }).find("no attention branch"), std::string::npos);
  RunConfig other = parity_run(2, "pre");
  other.model.sizes["features"] = 9;
  EXPECT_EQ(test::error_of([&] { resolve_config(other, *open_data(other)); }),
            "the data has 6 features but model.sizes.features is 9");
  RunConfig file = parity_run(2, "pre");
  file.data.path = "some.csv";
  EXPECT_EQ(test::error_of([&] { settle_task(file); }),
            "data.path is 'some.csv', but no task for model.family = \"mlp\" reads a file; expected one of parity");
  other.data.settings["bit"] = 1;
  EXPECT_EQ(test::error_of([&] { open_data(other); }),
            "data.settings.bit: the task parity has no such setting (did you mean 'bits'?); expected features, bits, "
            "separation");
}

// Of the right answers that the hidden signs allow, as many as the formula says.
TEST(Mlp, ParityHasTheAccuracyAndLossThatItStates) {
  RunConfig config = parity_run(2, "pre");
  const auto source = open_data(config);
  const double p = std::erfc(-std::sqrt(2.0)) / 2;
  EXPECT_NEAR(*source->best_accuracy(), p * p + (1 - p) * (1 - p), 1e-12);
  // The mean of -log p(right | both hidden coordinates), drawn instead of integrated.
  const RandomStream stream(5, "test.parity");
  double sum = 0;
  constexpr int kDraws = 200000;
  for (std::uint64_t i = 0; i < kDraws; ++i)
    sum -=
        std::log((1 + std::tanh(2 * (2 + stream.normal(2 * i))) * std::tanh(2 * (2 + stream.normal(2 * i + 1)))) / 2);
  EXPECT_NEAR(*source->optimum(), sum / kDraws, 0.005);
  Batch batch, again;
  source->fill(3, 1, batch);
  source->fill(3, 1, again);
  EXPECT_EQ(batch.numbers("features"), again.numbers("features"));
  double square = 0;
  for (const float x : batch.numbers("features")) square += static_cast<double>(x) * x;
  EXPECT_NEAR(square / static_cast<double>(batch.numbers("features").size()), 1, 0.15);
}

TEST(Mlp, LearnsParityUpToItsBestAccuracy) {
  RunConfig config = parity_run(4, "pre");
  config.train.steps = 600;
  config.train.evaluate_every = 0;
  const auto source = open_data(config);
  Cohort cohort(config, source);
  while (cohort.step() < config.train.steps) cohort.train_step();
  cohort.evaluate();
  const MemberState& state = cohort.member(0);
  const double best = *source->best_accuracy(), rows = 8 * 128;
  EXPECT_FALSE(state.diverged);
  EXPECT_NEAR(*state.evaluation_accuracy, best, 4 * std::sqrt(best * (1 - best) / rows) + 0.02);
  EXPECT_LT(*state.evaluation_loss, *source->optimum() + 0.08);
  EXPECT_GT(*state.evaluation_loss, *source->optimum() - 0.05);
}

// Second moments of the stream of networks at their start against the theory, without a fit.
TEST(Mlp, TheTheoryPredictsItsStream) {
  for (const char* scheme : {"pre", "post", "deepnorm", "x + f(x)"}) {
    SCOPED_TRACE(scheme);
    ModelConfig config = tiny("mlp", scheme);
    config.layers = 12;
    config.width = 128;
    config.batch = 64;
    set_size(config, "features", 32);
    const Prediction theory = predict(config);
    ASSERT_EQ(theory.streams.size(), 12u);
    Graph graph;
    const Model model = build_model(graph, config);
    for (const SublayerSite& site : model.sites) graph.output("out/" + site.name, site.stream_out * 1.0);
    CpuSession session(test::plain_plan(graph), {.threads = 1});
    initialise(session, model.parameters, 1);
    fill_inputs(session, config);
    session.run();
    for (std::size_t i = 0; i < model.sites.size(); ++i) {
      double square = 0;
      const auto x = session.tensor<float>("out/" + model.sites[i].name);
      for (const float v : x) square += static_cast<double>(v) * v;
      EXPECT_NEAR(std::sqrt(square / static_cast<double>(x.size())) / theory.streams[i].rms, 1, 0.1) << i;
    }
  }
}

}  // namespace
}  // namespace norma
