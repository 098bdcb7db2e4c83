// MLP-Mixer: what its two branches mix, gradients, theory, and a task whose best score is known.
#include <cmath>

#include "families/image_runs.h"
#include "norma/theory/predict.h"

namespace norma {
namespace {

using test::fill_inputs;
using test::tiny;

TEST(Mixer, HasABranchOverPositionsAndOneOverChannels) {
  ModelConfig config = tiny("mixer", "pre");
  config.width = 10;
  set_size(config, "image_height", 8);
  set_size(config, "image_width", 12);
  Graph graph;
  const Model model = build_model(graph, config, {.logits = true});
  ASSERT_EQ(model.sites.size(), 6u);
  EXPECT_EQ(model.sites[0].name, "layers.0.token");
  EXPECT_EQ(model.sites[1].name, "layers.0.ffn");
  EXPECT_EQ(graph.find("layers.0.token.in.weight").shape(), (Shape{6, 5})) << "six patches, half the width";
  EXPECT_EQ(graph.find("layers.0.token.out.weight").shape(), (Shape{5, 6}));
  EXPECT_EQ(graph.find("layers.0.ffn.in.weight").shape(), (Shape{10, 40}));
  EXPECT_EQ(graph.find("layers.0.token.norm1.gain").shape(), Shape{10}) << "a norm of channels, as everywhere";
}

// A change of one patch reaches the others through token mixing alone.
TEST(Mixer, ChannelsAreMixedPositionByPosition) {
  ModelConfig config = tiny("mixer", "x + 0*f(x)", DType::f64);
  const auto moved = [&](const std::string& scheme) {
    config.scheme = scheme;
    Graph graph;
    const Model model = build_model(graph, config);
    graph.output("out", model.sites.back().stream_out * 1.0);
    CpuSession session(test::plain_plan(graph), {.threads = 1});
    initialise(session, model.parameters, 1);
    fill_inputs(session, config);
    session.run();
    const auto out = session.tensor<double>("out");
    const std::vector<double> before(out.begin(), out.end());
    session.tensor<double>("image")[0] += 0.5;  // a pixel of the first patch of the first image
    session.run();
    std::vector<bool> changed;
    const std::size_t width = static_cast<std::size_t>(config.width);
    for (std::size_t i = 0; i < out.size(); i += width) changed.push_back(std::abs(out[i] - before[i]) > 1e-12);
    return changed;
  };
  for (const std::string scheme : {"x + f(x)", "norm(x + f(x))"}) {
    const std::vector<bool> all = moved(scheme);
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i < 4) << "image 0 has four patches";
  }
  const std::vector<bool> none = moved("x + 0*f(x)");
  for (std::size_t i = 0; i < none.size(); ++i) EXPECT_EQ(none[i], i < 1);
}

TEST(Mixer, HasTheRightGradients) {
  for (const char* scheme : {"pre", "post", "deepnorm", "rezero", "layerscale", "peri"}) {
    SCOPED_TRACE(scheme);
    ModelConfig config = tiny("mixer", scheme, DType::f64);
    config.width = 6;
    config.layers = 2;
    test::check_model_gradients(config);
  }
}

TEST(Mixer, MistakesAreNamed) {
  const auto error = [](auto change) {
    ModelConfig config = tiny("mixer", "pre");
    change(config);
    return test::error_of([&] {
      Graph graph;
      build_model(graph, config);
    });
  };
  EXPECT_EQ(error([](ModelConfig& c) { c.sizes["patch"] = 3; }),
            "model.sizes.image_height is 8, which does not divide into patches of 3; expected a multiple");
  EXPECT_EQ(error([](ModelConfig& c) { c.classes = 1; }), "classes is 1; a mixer is a classifier and needs at least 2");
  EXPECT_NE(error([](ModelConfig& c) { c.scheme = "ngpt"; }).find("unit length"), std::string::npos);
  EXPECT_NE(error([](ModelConfig& c) { c.scheme = "parallel"; }).find("no attention branch"), std::string::npos);
}

// Mean squares of the stream behind each sublayer against the theory's.
TEST(Mixer, TheTheoryPredictsItsStream) {
  for (const char* scheme : {"pre", "peri", "deepnorm"}) {
    SCOPED_TRACE(scheme);
    ModelConfig config = tiny("mixer", scheme);
    config.layers = 6;
    config.width = 48;
    config.batch = 8;
    set_size(config, "image_height", 16);
    set_size(config, "image_width", 16);
    const Prediction prediction = predict(config);
    const std::vector<double> streams = test::initial_streams(config, 5);
    ASSERT_EQ(streams.size(), 12u);
    for (std::size_t i = 0; i < streams.size(); ++i) EXPECT_NEAR(streams[i] / prediction.streams[i].rms, 1, 0.15) << i;
  }
}

TEST(Mixer, LearnsShapesUpToTheirBestAccuracy) {
  RunConfig config;
  config.model.family = "mixer";
  config.model.layers = 3;
  config.model.width = 32;
  config.model.batch = 32;
  config.model.scheme = "pre";
  config.train.lr = 5e-3;
  config.train.threads = 1;
  config.train.steps = 700;
  config.train.schedule.shape = ScheduleShape::linear;
  config.data.settings = {{"size", 8}, {"classes", 3}, {"contrast", 9}};
  config.model.sizes["patch"] = 2;
  test::expect_best_accuracy(config);
}

}  // namespace
}  // namespace norma
