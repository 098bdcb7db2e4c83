// U-Nets: levels, skip connections, gradients, mistakes.
#include "models/model_check.h"
#include "norma/theory/predict.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"

namespace norma {
namespace {

using test::tiny;

ModelConfig tiny_unet(const std::string& scheme, DType dtype = DType::f32) {
  ModelConfig config = tiny("unet", scheme, dtype);
  config.layers = 3;
  config.width = 6;
  config.heads = 2;
  config.batch = 2;
  set_size(config, "image_height", 4);
  set_size(config, "image_width", 8);
  set_size(config, "image_channels", 3);
  set_size(config, "levels", 2);
  return config;
}

TEST(Unet, HalvesAndDoublesAndJoinsWhatItHasSeen) {
  Graph graph;
  const Model model = build_model(graph, tiny_unet("unet"), {.logits = true});
  std::vector<std::string> names;
  for (const SublayerSite& site : model.sites) names.push_back(site.name);
  EXPECT_EQ(names, (std::vector<std::string>{"down.layers.0.conv", "down.layers.1.conv", "down.layers.2.conv",
                                             "middle.layers.0.conv", "middle.layers.0.attn", "up.layers.0.conv",
                                             "up.layers.1.conv", "up.layers.2.conv"}));
  EXPECT_EQ(model.sites[1].stream_out.shape(), (Shape{2, 32, 6})) << "two of three blocks at the first level";
  EXPECT_EQ(model.sites[2].stream_out.shape(), (Shape{2, 8, 12}));
  EXPECT_EQ(model.sites[4].stream_out.shape(), (Shape{2, 8, 12}));
  EXPECT_EQ(model.sites[5].stream_in.shape(), (Shape{2, 8, 24})) << "beside what the last block down has answered";
  EXPECT_EQ(model.sites[6].stream_in.shape(), (Shape{2, 32, 18})) << "twice as large";
  EXPECT_EQ(model.sites[7].stream_in.shape(), (Shape{2, 32, 12}));
  EXPECT_EQ(model.logits.shape(), (Shape{2, 4, 8, 3}));
  EXPECT_EQ(graph.find("grow1.weight").shape(), (Shape{3, 3, 12, 12}));
  EXPECT_EQ(graph.find("down.layers.2.conv.condition.weight").shape(), (Shape{24, 24})) << "scales and shifts";
  EXPECT_TRUE(graph.find("up.final.norm1.gain"));
}

TEST(Unet, LevelsAreAsWideAsTold) {
  ModelConfig config = tiny_unet("unet");
  set_size(config, "width2", 8);
  Graph graph;
  const Model model = build_model(graph, config);
  EXPECT_EQ(model.sites[1].stream_out.shape(), (Shape{2, 32, 6}));
  EXPECT_EQ(model.sites[2].stream_out.shape(), (Shape{2, 8, 8}));
  EXPECT_EQ(model.sites[6].stream_in.shape(), (Shape{2, 32, 14})) << "beside what the first level has answered";
  set_size(config, "width2", -8);
  EXPECT_EQ(test::error_of([&] {
              Graph other;
              build_model(other, config);
            }),
            "model.sizes.width2 is -8; expected a whole number from 1 to a billion");
}

TEST(Unet, HasTheRightGradients) {
  for (const char* scheme : {"unet", "resnet_v2", "pre", "skipinit", "fixup"}) {
    SCOPED_TRACE(scheme);
    const ModelConfig config = tiny_unet(scheme, DType::f64);
    test::check_model_gradients(config);
  }
}

TEST(Unet, GrowsByTransposedConvolutionsWhereAsked) {
  ModelConfig config = tiny_unet("unet", DType::f64);
  set_size(config, "transposed", 1);
  Graph graph;
  const Model model = build_model(graph, config);
  EXPECT_EQ(graph.find("grow1.weight").shape(), (Shape{4, 4, 12, 12}));
  EXPECT_EQ(model.sites[6].stream_in.shape(), (Shape{2, 32, 18})) << "as with repeated pixels";
  test::check_model_gradients(config);
}

TEST(Unet, MistakesAreNamed) {
  const auto error = [](auto change, const char* scheme = "unet") {
    ModelConfig config = tiny_unet(scheme);
    change(config);
    return test::error_of([&] {
      Graph graph;
      build_model(graph, config);
    });
  };
  EXPECT_EQ(error([](ModelConfig& c) { set_size(c, "image_height", 5); }),
            "images of 5 x 8 cannot be halved 1 times for 2 levels; expected multiples of 2, or fewer levels");
  EXPECT_EQ(error([](ModelConfig& c) { set_size(c, "levels", 4); }),
            "layers is 3; expected at least one block for each of 4 levels");
  EXPECT_EQ(error([](ModelConfig& c) { c.heads = 5; }),
            "the middle of the U-Net has 12 channels, which 5 heads do not divide");
  EXPECT_EQ(error([](ModelConfig&) {}, "parallel"),
            "scheme 'parallel' has a formula for a whole layer; layers of a U-Net are single blocks of convolutions, "
            "and a formula for every sublayer suits it");
}

ModelConfig unet_of_points(const std::string& scheme) {
  ModelConfig config = tiny_unet(scheme);
  config.width = 16;
  for (const char* size : {"image_height", "image_width", "levels"}) set_size(config, size, 1);
  return config;
}

TEST(Unet, NormsOfSingleNumbersAreRefused) {
  const auto error = [](ModelConfig config) {
    return test::error_of([&] {
      Graph graph;
      build_model(graph, config);
    });
  };
  ModelConfig config = unet_of_points("unet");
  config.norm_groups = 16;
  EXPECT_EQ(error(config),
            "GroupNorm at 'down.layers.0.conv.norm1' would be over single numbers (samples have 1 position, and 16 "
            "channels are in 16 groups) and answer a constant, so that nothing before it could learn; expected fewer "
            "groups (model.norm_groups), or samples of more positions");
  config = unet_of_points("resnet_v2");
  config.norm = NormKind::instance;
  EXPECT_NE(error(config).find("InstanceNorm at 'down.layers.0.conv.norm1' would be over single numbers"),
            std::string::npos);
  for (const NormKind kind : {NormKind::layer, NormKind::weightless, NormKind::rms, NormKind::scale}) {
    ModelConfig narrow = tiny("mlp", "pre");
    narrow.width = narrow.heads = 1;
    narrow.norm = kind;
    EXPECT_NE(error(narrow).find("(the stream is 1 wide)"), std::string::npos) << name_of(kind);
  }
  config = unet_of_points("resnet_v2");
  config.norm = NormKind::batch;
  EXPECT_EQ(error(config), "") << "its statistics are over images";
}

// As many groups as 32 and the channels allow would be of one number each here.
TEST(Unet, LearnsPointsWithGroupNorm) {
  RunConfig config;
  config.model.family = "unet";
  config.model.layers = 2;
  config.model.width = 16;
  config.model.heads = 2;
  config.model.batch = 64;
  config.model.scheme = "unet";
  config.data.task = "mixture";
  config.train.lr = 3e-3;
  config.train.threads = 1;
  config.train.steps = 150;
  const auto source = open_data(config);
  Cohort cohort(config, source);
  while (cohort.step() < config.train.steps) cohort.train_step();
  cohort.evaluate();
  EXPECT_LT(*cohort.member(0).evaluation_loss, 0.4) << "guessing: 1";
}

TEST(Unet, TheTheorySaysWhyItHasNoPrediction) {
  EXPECT_NE(test::error_of([] { predict(tiny_unet("resnet_v2")); }).find("no rule for a U-Net: its stream changes"),
            std::string::npos);
}

// Behind noise, the shapes' least squared error is known: a little training comes down from 1 towards it, never below.
TEST(Unet, LearnsShapesBehindNoise) {
  RunConfig config;
  config.model.family = "unet";
  config.model.layers = 2;
  config.model.width = 8;
  config.model.heads = 2;
  config.model.batch = 32;
  config.model.scheme = "unet";
  config.data.task = "shapes";
  config.data.settings = {{"size", 8}, {"classes", 3}, {"contrast", 12}};
  config.train.lr = 5e-3;
  config.train.threads = 1;
  config.train.steps = 150;
  const auto source = open_data(config);
  Cohort cohort(config, source);
  cohort.evaluate();
  EXPECT_NEAR(*cohort.member(0).evaluation_loss, 1, 0.1) << "it starts by guessing nothing";
  while (cohort.step() < config.train.steps) cohort.train_step();
  cohort.evaluate();
  const double margin = *cohort.member(0).evaluation_margin;
  EXPECT_LT(*cohort.member(0).evaluation_loss, 0.8 + 0.2 * *source->optimum());
  EXPECT_GT(*cohort.member(0).evaluation_loss, *source->optimum() - margin);
}

}  // namespace
}  // namespace norma
