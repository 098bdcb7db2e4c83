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

std::vector<std::string> sites_of(const Model& model) {
  std::vector<std::string> names;
  for (const SublayerSite& site : model.sites) names.push_back(site.name);
  return names;
}

TEST(Unet, HalvesAndDoublesAndJoinsWhatItHasSeen) {
  Graph graph;
  const Model model = build_model(graph, tiny_unet("unet"), {.logits = true});
  EXPECT_EQ(sites_of(model), (std::vector<std::string>{"down.layers.0.conv", "down.layers.1.conv", "down.layers.2.conv",
                                                       "middle.layers.0.conv", "middle.layers.0.attn",
                                                       "middle.layers.1.conv", "up.layers.0.conv", "up.layers.1.conv",
                                                       "up.layers.2.conv", "up.layers.3.conv", "up.layers.4.conv"}));
  EXPECT_EQ(model.sites[1].stream_out.shape(), (Shape{2, 32, 6})) << "two of three blocks at the first level";
  EXPECT_EQ(model.sites[2].stream_in.shape(), (Shape{2, 8, 6})) << "a convolution halves the image before the block";
  EXPECT_EQ(model.sites[2].stream_out.shape(), (Shape{2, 8, 12}));
  EXPECT_EQ(model.sites[5].stream_out.shape(), (Shape{2, 8, 12}));
  EXPECT_EQ(model.sites[6].stream_in.shape(), (Shape{2, 8, 24})) << "beside what the last block down has answered";
  EXPECT_EQ(model.sites[7].stream_in.shape(), (Shape{2, 8, 18})) << "beside the convolution between the levels";
  EXPECT_EQ(model.sites[8].stream_in.shape(), (Shape{2, 32, 18})) << "twice as large";
  EXPECT_EQ(model.sites[10].stream_in.shape(), (Shape{2, 32, 12})) << "beside the stem's answer";
  EXPECT_EQ(model.logits.shape(), (Shape{2, 4, 8, 3}));
  EXPECT_EQ(graph.find("shrink2.weight").shape(), (Shape{3, 3, 6, 6}));
  EXPECT_EQ(graph.find("grow2.weight").shape(), (Shape{3, 3, 12, 12}));
  EXPECT_EQ(graph.find("down.layers.2.conv.condition.weight").shape(), (Shape{24, 12})) << "a shift of each channel";
  EXPECT_TRUE(graph.find("up.final.norm1.gain"));
}

TEST(Unet, AttentionFollowsTheBlocksOfOneSize) {
  for (const auto& [height, prefix] : {std::pair{4, "0 1 | 2 3 4"}, std::pair{2, "2 | 0 1"}}) {
    ModelConfig config = tiny_unet("unet");
    set_size(config, "attention", height);
    Graph graph;
    std::vector<std::string> names = sites_of(build_model(graph, config));
    std::vector<std::string> listed;
    for (const StackSites& stack : config.family->sites(config)) {
      EXPECT_EQ(std::ssize(stack.names()), stack.sublayers()) << stack.scope;
      EXPECT_EQ(stack.closing().scope, "conv") << "what every layer has";
      for (const std::string& name : stack.names()) listed.push_back(name);
    }
    EXPECT_EQ(names, listed) << "a family names its sites as models have them";
    std::erase_if(names, [](const std::string& name) { return name.find("attn") == std::string::npos; });
    std::string found;
    for (const std::string& name : names) {
      if (name.starts_with("middle")) {
        EXPECT_EQ(name, "middle.layers.0.attn");
        found += "| ";
      } else {
        found += name.substr(name.find("layers.") + 7, 1) + " ";
      }
    }
    found.pop_back();
    EXPECT_EQ(found, prefix) << height;
  }
}

// k counts the sublayers that there are, and n is their number, also where layers differ.
TEST(Unet, SublayersAreCountedAsTheyAre) {
  ModelConfig config = tiny_unet("unet");
  const char* toml = "sublayer = \"x + g*f(x)\"\n[learned]\ng = { init = \"k + n/100\", per = \"sublayer\" }";
  config.scheme = {"mine", std::make_shared<const Scheme>(parse_scheme("mine", toml))};
  set_size(config, "attention", 2);
  Graph graph;
  const Model model = build_model(graph, config);
  const auto start = [&](const std::string& name) {
    for (const ParameterSpec& spec : model.parameters) {
      if (spec.name == name) return spec.init.value;
    }
    ADD_FAILURE() << name;
    return 0.0;
  };
  EXPECT_DOUBLE_EQ(start("down.layers.0.conv.g"), 1.04);
  EXPECT_DOUBLE_EQ(start("down.layers.2.conv.g"), 3.04);
  EXPECT_DOUBLE_EQ(start("down.layers.2.attn.g"), 4.04);
  EXPECT_DOUBLE_EQ(start("middle.layers.1.conv.g"), 3.03);
  EXPECT_DOUBLE_EQ(start("up.layers.1.conv.g"), 3.07);
  EXPECT_DOUBLE_EQ(start("up.layers.1.attn.g"), 4.07);
  EXPECT_DOUBLE_EQ(start("up.layers.2.conv.g"), 5.07) << "attention ends with the level";
}

// 64, 128, 128 and 128 channels on images of 32 x 32, attention at 16 x 16: counted in a network written in PyTorch,
// 8,952,067 parameters and 3,198,418,944 operations of products of convolutions, linear layers and attention an image.
TEST(Unet, IsTheStandardNetwork) {
  ModelConfig config{.family = "unet", .layers = 8, .width = 64, .heads = 1, .batch = 1, .scheme = "unet"};
  config.sizes = {{"image_height", 32}, {"image_width", 32}, {"image_channels", 3}, {"levels", 4},
                  {"width2", 128},      {"width3", 128},     {"width4", 128},       {"attention", 16}};
  Graph graph;
  const Model model = build_model(graph, config);
  std::int64_t parameters = 0;
  for (const Wire& parameter : graph.parameters()) parameters += parameter.shape().elements();
  EXPECT_EQ(parameters, 8952067);
  EXPECT_NEAR(traced_flops(graph, model.loss) / 3, 3198418944.0, 1e-3 * 3198418944.0);
}

TEST(Unet, LevelsAreAsWideAsTold) {
  ModelConfig config = tiny_unet("unet");
  set_size(config, "width2", 8);
  Graph graph;
  const Model model = build_model(graph, config);
  EXPECT_EQ(model.sites[1].stream_out.shape(), (Shape{2, 32, 6}));
  EXPECT_EQ(model.sites[2].stream_out.shape(), (Shape{2, 8, 8}));
  EXPECT_EQ(model.sites[8].stream_in.shape(), (Shape{2, 32, 14})) << "beside what the first level has answered";
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
    ModelConfig config = tiny_unet(scheme, DType::f64);
    set_size(config, "attention", 2);
    test::check_model_gradients(config);
  }
}

// Also where there are no more channels than groups are usual: a norm of each channel by itself would remove what the
// timestep adds to it, and samples then come out in any brightness.
TEST(Unet, TheTimestepReachesTheAnswer) {
  for (const std::int64_t width : {6, 16, 32}) {
    ModelConfig config = tiny_unet("resnet_v2", DType::f64);
    config.width = width;
    config.norm = NormKind::group;
    Graph graph;
    const Model model = build_model(graph, config, {.logits = true});
    graph.output("logits", model.logits);
    CpuSession session(test::plain_plan(graph), {.threads = 1});
    initialise(session, model.parameters, 1);
    test::fill_inputs(session, config);
    const auto answer_at = [&](double timestep) {
      session.write<double>("timestep", std::vector<double>(2, timestep));
      session.run();
      return std::vector<double>(session.tensor<double>("logits").begin(), session.tensor<double>("logits").end());
    };
    EXPECT_GT(test::largest_difference(answer_at(10), answer_at(900)), 1e-2) << width;
  }
}

TEST(Unet, GrowsByTransposedConvolutionsWhereAsked) {
  ModelConfig config = tiny_unet("unet", DType::f64);
  set_size(config, "transposed", 1);
  Graph graph;
  const Model model = build_model(graph, config);
  EXPECT_EQ(graph.find("grow2.weight").shape(), (Shape{4, 4, 12, 12}));
  EXPECT_EQ(model.sites[8].stream_in.shape(), (Shape{2, 32, 18})) << "as with repeated pixels";
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
            "images of 5 x 8 cannot be halved 1 time for 2 levels; expected multiples of 2, or fewer levels");
  EXPECT_EQ(error([](ModelConfig& c) { set_size(c, "levels", 4); }),
            "layers is 3; expected at least one block for each of 4 levels");
  EXPECT_EQ(error([](ModelConfig& c) { c.heads = 5; }),
            "the U-Net attends to images 2 x 4 of 12 channels, which 5 heads do not divide");
  EXPECT_EQ(error([](ModelConfig& c) {
              c.heads = 4;
              set_size(c, "attention", 4);
            }),
            "the U-Net attends to images 4 x 8 of 6 channels, which 4 heads do not divide");
  EXPECT_EQ(error([](ModelConfig& c) { c.norm_groups = 6; }),
            "GroupNorm of single channels behind the first convolution of a U-Net's block removes what the condition "
            "adds to each of its 6 channels, so that the model would not know the timestep; expected groups of several "
            "channels, or another norm");
  EXPECT_EQ(error([](ModelConfig& c) { c.norm = NormKind::instance; }, "resnet_v2").substr(0, 65),
            "InstanceNorm of single channels behind the first convolution of a");
  EXPECT_EQ(error([](ModelConfig& c) { set_size(c, "attention", 8); }),
            "model.sizes.attention is 8, but no level has images of that height; expected one of 4, 2");
  EXPECT_EQ(error([](ModelConfig& c) { set_size(c, "width3", 8); }),
            "model.sizes.width3 is given, but the U-Net has 2 levels");
  EXPECT_EQ(error([](ModelConfig& c) { set_size(c, "middle", 2); }),
            "model.sizes.middle: the family unet has no such size; expected image_height, image_width, image_channels, "
            "levels, width2, width3, width4, attention, transposed, time_features");
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
