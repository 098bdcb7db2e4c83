// Vision transformers: patches as tokens, every scheme of the catalogue, gradients, a task whose best score is known.
#include <cmath>

#include "models/model_check.h"
#include "norma/theory/predict.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"

namespace norma {
namespace {

using test::tiny;

ModelConfig tiny_vit(const std::string& scheme, DType dtype = DType::f32) {
  ModelConfig config = tiny("vit", scheme, dtype);
  config.layers = 2;
  set_size(config, "image_height", 8);
  set_size(config, "image_width", 12);
  set_size(config, "image_channels", 3);
  return config;
}

TEST(Vit, PatchesAreTokens) {
  ModelConfig config = tiny_vit("pre");
  Graph graph;
  const Model model = build_model(graph, config, {.logits = true});
  EXPECT_EQ(model.sites[0].stream_in.shape(), (Shape{4, 6, 24}));
  EXPECT_EQ(model.sites[0].name, "layers.0.attn");
  EXPECT_EQ(graph.find("embedding.patch").shape(), (Shape{4, 4, 3, 24}));
  EXPECT_EQ(graph.find("embedding.position").shape(), (Shape{6, 24}));
  set_size(config, "class_token", 1);
  Graph with_token;
  EXPECT_EQ(build_model(with_token, config).sites[0].stream_in.shape(), (Shape{4, 7, 24}));
}

TEST(Vit, HasTheRightGradients) {
  for (const char* scheme : {"pre", "post", "layerscale", "dyt", "peri"}) {
    for (const int token : {0, 1}) {
      SCOPED_TRACE(scheme);
      ModelConfig config = tiny_vit(scheme, DType::f64);
      if (token > 0) set_size(config, "class_token", 1);
      test::check_model_gradients(config);
    }
  }
}

TEST(Vit, MistakesAreNamed) {
  const auto error = [](auto change) {
    ModelConfig config = tiny_vit("pre");
    change(config);
    return test::error_of([&] {
      Graph graph;
      build_model(graph, config);
    });
  };
  EXPECT_EQ(error([](ModelConfig& c) { set_size(c, "patch", 5); }),
            "model.sizes.image_height is 8, which does not divide into patches of 5; expected a multiple");
  EXPECT_EQ(error([](ModelConfig& c) { c.positions = Positions::rope; }),
            "rotary positions are of rows of tokens; expected learned, sinusoidal or none");
  EXPECT_EQ(error([](ModelConfig& c) { set_size(c, "class_token", 2); }),
            "model.sizes.class_token is 2; expected 1, or nothing");
}

// The stream at the start is what the theory says, without a fit.
TEST(Vit, TheTheoryPredictsItsStream) {
  ModelConfig config = tiny_vit("pre");
  config.layers = 6;
  config.width = 96;
  config.batch = 16;
  const Prediction theory = predict(config);
  const std::vector<double> streams = test::initial_streams(config, 1);
  ASSERT_EQ(theory.streams.size(), streams.size());
  for (std::size_t i = 0; i < streams.size(); ++i) EXPECT_NEAR(streams[i] / theory.streams[i].rms, 1, 0.12) << i;
}

TEST(Vit, LearnsShapes) {
  RunConfig config;
  config.model.family = "vit";
  config.model.layers = 2;
  config.model.width = 32;
  config.model.heads = 2;
  config.model.batch = 32;
  set_size(config.model, "patch", 4);
  config.data.settings = {{"size", 8}, {"classes", 3}, {"contrast", 7}};
  config.train.lr = 3e-3;
  config.train.threads = 1;
  config.train.steps = 500;
  const auto source = open_data(config);
  Cohort cohort(config, source);
  while (cohort.step() < config.train.steps) cohort.train_step();
  cohort.evaluate();
  EXPECT_GT(*cohort.member(0).evaluation_accuracy, 0.6) << "chance is a third";
  EXPECT_LT(*cohort.member(0).evaluation_accuracy, *source->best_accuracy() + 0.06);
}

}  // namespace
}  // namespace norma
