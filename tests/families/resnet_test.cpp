// Residual networks of convolutions: stages, blocks by formula, gradients, and a task whose best score is known.
#include <cmath>

#include "families/image_runs.h"
#include "norma/norms/norm.h"

namespace norma {
namespace {

using test::fill_inputs;
using test::tiny_resnet;

RunConfig shapes_run(std::int64_t layers, const std::string& scheme) {
  RunConfig config;
  config.model.family = "resnet";
  config.model.layers = layers;
  config.model.width = 8;
  config.model.batch = 32;
  config.model.scheme = scheme;
  config.model.norm = NormKind::batch;
  config.train.lr = 5e-3;
  config.train.threads = 1;
  config.data.settings = {{"size", 8}, {"classes", 3}, {"contrast", 6}};
  return config;
}

TEST(ResNet, StagesHalveTheImageAndDoubleItsChannels) {
  Graph graph;
  const Model model = build_model(graph, tiny_resnet("resnet_v1"), {.logits = true});
  ASSERT_EQ(model.sites.size(), 3u);
  EXPECT_EQ(model.sites[0].stream_out.shape(), (Shape{4, 30, 4}));
  EXPECT_EQ(model.sites[1].stream_out.shape(), (Shape{4, 9, 8})) << "3 x 3";
  EXPECT_EQ(model.sites[2].stream_out.shape(), (Shape{4, 4, 16}));
  EXPECT_EQ(graph.find("stem.weight").shape(), (Shape{3, 3, 3, 4}));
  EXPECT_EQ(graph.find("stem.norm.gain").shape(), Shape{4});
  EXPECT_EQ(graph.find("layers.1.conv.in.weight").shape(), (Shape{3, 3, 4, 8}));
  EXPECT_EQ(graph.find("layers.1.conv.out.weight").shape(), (Shape{3, 3, 8, 8}));
  EXPECT_EQ(graph.find("layers.1.conv.skip.weight").shape(), (Shape{1, 1, 4, 8}));
  EXPECT_EQ(graph.find("layers.1.conv.skip_norm.gain").shape(), Shape{8});
  EXPECT_EQ(graph.find("layers.1.conv.norm1.gain").shape(), Shape{8}) << "norm(f(x))";
  EXPECT_FALSE(graph.find("layers.0.conv.skip.weight")) << "its block keeps the shape";
  EXPECT_FALSE(graph.find("layers.0.conv.in.bias")) << "a norm follows";
  EXPECT_EQ(graph.find("head.weight").shape(), (Shape{16, 7}));
}

TEST(ResNet, SizesAreConfiguration) {
  ModelConfig config = tiny_resnet("resnet_v2");
  config.layers = 7;
  config.sizes.insert({{"stages", 2}, {"blocks1", 3}, {"blocks2", 4}, {"width2", 5}, {"expansion", 4}, {"stem", 7}});
  set_size(config, "image_height", 33);
  set_size(config, "image_width", 32);
  Graph graph;
  const Model model = build_model(graph, config);
  EXPECT_EQ(model.sites[0].stream_in.shape(), (Shape{4, 9 * 8, 4})) << "a large stem quarters the image";
  EXPECT_EQ(model.sites[2].stream_out.shape(), (Shape{4, 9 * 8, 16}));
  EXPECT_EQ(model.sites[3].stream_out.shape(), (Shape{4, 5 * 4, 20}));
  EXPECT_EQ(graph.find("stem.weight").shape(), (Shape{7, 7, 3, 4}));
  EXPECT_EQ(graph.find("layers.3.conv.in.weight").shape(), (Shape{1, 1, 16, 5}));
  EXPECT_EQ(graph.find("layers.3.conv.middle.weight").shape(), (Shape{3, 3, 5, 5}));
  EXPECT_EQ(graph.find("layers.3.conv.out.weight").shape(), (Shape{1, 1, 5, 20}));
  EXPECT_TRUE(graph.find("layers.0.conv.skip.weight")) << "from 4 channels to 16";
}

// Every parameter, through stages, skips and norms of every kind; the last image size is odd.
TEST(ResNet, HasTheRightGradients) {
  const std::vector<std::pair<std::string, NormKind>> cases = {
      {"resnet_v1", NormKind::batch}, {"resnet_v2", NormKind::batch},    {"resnet_v2", NormKind::group},
      {"resnet_v1", NormKind::layer}, {"resnet_v2", NormKind::instance}, {"pre", NormKind::layer},
      {"fixup", NormKind::layer},     {"deepnorm", NormKind::rms},       {"skipinit", NormKind::layer},
      {"layerscale", NormKind::layer}};
  for (const auto& [scheme, kind] : cases) {
    SCOPED_TRACE(scheme + " " + std::string(name_of(kind)));
    ModelConfig config = tiny_resnet(scheme, DType::f64);
    config.norm = kind;
    config.layers = 3;
    test::check_model_gradients(config);
  }
}

// What is left of a block that is left out is what it does to the shape of the stream.
TEST(ResNet, LayersCanBeLeftOut) {
  const ModelConfig config = tiny_resnet("resnet_v2");
  Graph graph;
  const Model model = build_model(graph, config, {.order = LayerOrder{.layers = {0, 2}}});
  ASSERT_EQ(model.sites.size(), 2u);
  EXPECT_EQ(model.sites[1].stream_in.shape(), (Shape{4, 9, 8}));
  EXPECT_TRUE(graph.find("layers.1.conv.skip.weight"));
  EXPECT_FALSE(graph.find("layers.1.conv.in.weight"));
  Graph first;  // nothing was read by a branch yet, so that its projection takes the stream
  EXPECT_EQ(build_model(first, config, {.order = LayerOrder{.layers = {0}}}).sites[0].stream_out.shape(),
            (Shape{4, 30, 4}));
  EXPECT_TRUE(first.find("layers.2.conv.skip.weight"));
  Graph turned;
  EXPECT_EQ(test::error_of([&] {
              build_model(turned, config, {.order = LayerOrder{.layers = {1, 0, 2}}});
            }),
            "layer 0 reads images 6 x 5 of 4 channels, but was given [4, 9, 8]");
}

TEST(ResNet, MistakesAreNamed) {
  const auto error = [](auto change) {
    ModelConfig config = tiny_resnet("pre");
    change(config);
    return test::error_of([&] {
      Graph graph;
      build_model(graph, config);
    });
  };
  EXPECT_EQ(error([](ModelConfig& c) { c.sizes.erase("image_height"); }),
            "model.sizes.image_height is not given; expected that of the images");
  EXPECT_EQ(error([](ModelConfig& c) { c.sizes["stages"] = 4; }),
            "layers is 3; expected at least one block for each of 4 stages");
  EXPECT_EQ(error([](ModelConfig& c) { c.sizes["blocks1"] = 1; }),
            "blocks of 1 stages are given; expected those of all 3 or none");
  EXPECT_NE(error([](ModelConfig& c) { c.sizes["stem"] = 5; }).find("model.sizes.stem is 5; expected 3"),
            std::string::npos);
  EXPECT_NE(error([](ModelConfig& c) { c.scheme = "parallel"; }).find("no attention branch"), std::string::npos);
  EXPECT_NE(error([](ModelConfig& c) { c.scheme = "ngpt"; }).find("no weights of unit length"), std::string::npos);
  EXPECT_EQ(error([](ModelConfig& c) { c.classes = 1; }),
            "classes is 1; a resnet is a classifier and needs at least 2");
}

// Mean squares of the stream behind each block of one stage, at the start.
std::vector<double> stream_squares(const std::string& scheme, NormKind kind, std::int64_t layers) {
  ModelConfig config = tiny_resnet(scheme);
  config.layers = layers;
  config.norm = kind;
  config.activation = Activation::relu;
  config.width = 8;
  config.batch = 8;
  set_size(config, "stages", 1);
  Graph graph;
  const Model model = build_model(graph, config);
  for (const SublayerSite& site : model.sites) graph.output("out/" + site.name, site.stream_out * 1.0);
  CpuSession session(test::plain_plan(graph), {.threads = 1});
  initialise(session, model.parameters, 1);
  fill_inputs(session, config);
  session.run();
  std::vector<double> squares;
  for (const SublayerSite& site : model.sites) {
    const auto x = session.tensor<float>("out/" + site.name);
    double sum = 0;
    for (const float v : x) sum += static_cast<double>(v) * v;
    squares.push_back(sum / static_cast<double>(x.size()));
  }
  return squares;
}

// With BatchNorm each branch adds the same variance (De and Smith 2020: blocks count 1/l); without a norm each block
// multiplies it; Fixup's branches start at zero.
TEST(ResNet, AtTheStartVarianceGrowsLinearlyWithBatchNormAndExplodesWithout) {
  constexpr std::size_t kBlocks = 54;
  const std::vector<double> normed = stream_squares("resnet_v2", NormKind::batch, kBlocks);
  const double first = normed[5] - normed[0], second = normed[53] - normed[48];
  EXPECT_GT(second / first, 0.5) << "each five blocks add about as much";
  EXPECT_LT(second / first, 2);
  EXPECT_NEAR(std::log(normed[53] / normed[13]) / std::log(54.0 / 14), 1, 0.25);
  const std::vector<double> bare = stream_squares("x + f(relu(x))", NormKind::batch, kBlocks);
  EXPECT_GT(bare[53] / bare[0], std::pow(1.3, 53)) << "twice at each block, less at the borders of a small image";
  const std::vector<double> fixed = stream_squares("fixup", NormKind::batch, kBlocks);
  EXPECT_NEAR(fixed[53] / fixed[0], 1, 1e-5);
}

// A task that cannot be seen is guessed, one that cannot be missed is solved, and between the best score grows.
TEST(ResNet, ShapesHaveABestScore) {
  double before = 0;
  for (const double contrast : {0.1, 3.0, 5.0, 7.0, 20.0}) {
    RunConfig config = shapes_run(1, "pre");
    config.data.settings["contrast"] = contrast;
    const auto source = open_data(config);
    const double best = *source->best_accuracy();
    EXPECT_GT(best, before);
    EXPECT_LT(std::abs(best - (contrast < 1 ? 1.0 / 3 : contrast > 10 ? 1.0 : best)), 0.02) << contrast;
    EXPECT_NEAR(*source->optimum(), contrast < 1 ? std::log(3.0) : contrast > 10 ? 0.0 : *source->optimum(), 0.01);
    before = best;
  }
  RunConfig config = shapes_run(1, "pre");
  const auto source = open_data(config);
  Batch batch, again;
  source->fill(3, 1, batch);
  source->fill(3, 1, again);
  EXPECT_EQ(batch.numbers("image"), again.numbers("image"));
  EXPECT_EQ(batch.tensor("image").shape, (Shape{32, 8, 8, 1}));
  config.data.settings["size"] = 3;
  EXPECT_EQ(test::error_of([&] { open_data(config); }), "data.settings.size is 3; expected 5 to 256");
}

TEST(ResNet, LearnsShapesUpToTheirBestAccuracy) {
  for (const char* scheme : {"resnet_v1", "resnet_v2"}) {
    SCOPED_TRACE(scheme);
    RunConfig config = shapes_run(3, scheme);
    config.train.steps = 500;
    config.train.schedule.shape = ScheduleShape::linear;
    EXPECT_LT(test::expect_best_accuracy(config), 0.25);
  }
}

}  // namespace
}  // namespace norma
