// Blocks of residual networks of convolutions beyond v1 and v2, and weights in other forms.
#include <cmath>

#include "families/image_runs.h"
#include "norma/models/weight_form.h"
#include "norma/norms/norm.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

using test::fill_inputs;
using test::tiny;
using test::tiny_resnet;

// The gradient of a spectral weight is that of its limit, so one singular value of each is made so large that eight
// iterations reach it.
void check_every_gradient(const ModelConfig& config) {
  test::check_model_gradients(config, [&](CpuSession& session, const ParameterSpec& spec) {
    const bool made = spec.name.starts_with("layers.") || spec.name.starts_with("stem");
    if (config.weight_form != WeightForm::spectral || !made) return;
    const RandomStream stream(2, spec.name);
    const std::span<double> tensor = session.tensor<double>(spec.name);
    const auto columns = static_cast<std::size_t>(session.plan().slot(spec.name).type.shape.channels());
    for (std::size_t i = 0; i < tensor.size() && columns < tensor.size(); ++i)
      tensor[i] += (2 + stream.normal(i / columns)) * (2 + stream.normal(1000 + i % columns));
  });
}

TEST(Blocks, HaveTheRightGradients) {
  for (const char* scheme : {"nf_resnet", "resnet_d", "skipinit", "rezero", "convnext"}) {
    SCOPED_TRACE(scheme);
    ModelConfig config = tiny_resnet(scheme, DType::f64);
    config.norm = config.scheme->name == "resnet_d" ? NormKind::batch : NormKind::layer;
    check_every_gradient(config);
  }
  ModelConfig deep = tiny_resnet("resnet_d", DType::f64);
  deep.norm = NormKind::group;
  deep.sizes.insert({{"stem", 7}, {"deep_stem", 1}, {"stages", 2}, {"expansion", 2}});
  set_size(deep, "image_height", 17);
  set_size(deep, "image_width", 14);
  check_every_gradient(deep);
  ModelConfig patches = tiny_resnet("convnext", DType::f64);
  patches.sizes.insert({{"stem", 2}, {"kernel", 5}});
  set_size(patches, "image_width", 8);
  check_every_gradient(patches);
}

// Convolutions, projections, attention and feed-forward weights, packed ones among them.
TEST(WeightForms, HaveTheRightGradients) {
  for (const WeightForm form : {WeightForm::standardised, WeightForm::weight_norm, WeightForm::spectral}) {
    for (const char* family : {"resnet", "vit", "mlp", "decoder"}) {
      SCOPED_TRACE(std::string(family) + " " + std::to_string(static_cast<int>(form)));
      ModelConfig config = std::string(family) == "resnet" ? tiny_resnet("resnet_v2", DType::f64)
                                                           : tiny(Family(family), "pre", DType::f64);
      config.layers = 2;
      config.weight_form = form;
      check_every_gradient(config);
    }
  }
}

// What a layer uses: columns of mean 0 and length `gain`, or of any mean and length `gain`.
TEST(WeightForms, AreWhatTheyAreCalled) {
  for (const WeightForm form : {WeightForm::standardised, WeightForm::weight_norm}) {
    Graph graph;
    Parameters parameters(graph, DType::f64);
    const Wire weight = parameters.make({3, 1, 7, 5}, {.name = "weight", .init = Init::normal(0.3), .role = "conv"});
    const ParameterSpec gain{.name = {}, .init = Init::listed({1, 2, 0.5, 1, 3}), .role = "norm"};
    graph.output("formed", formed(parameters, weight, form, gain) * 1.0);
    CpuSession session(test::plain_plan(graph), {.threads = 1});
    initialise(session, parameters.specs(), 4);
    session.run();
    const auto w = session.tensor<double>("formed");
    const double gains[] = {1, 2, 0.5, 1, 3};
    for (std::size_t column = 0; column < 5; ++column) {
      double sum = 0, squares = 0;
      for (std::size_t row = 0; row < 21; ++row)
        sum += w[row * 5 + column], squares += std::pow(w[row * 5 + column], 2);
      EXPECT_NEAR(std::sqrt(squares), gains[column], 1e-3 * gains[column]);
      if (form == WeightForm::standardised) {
        EXPECT_NEAR(sum, 0, 1e-12);
      }
    }
  }
}

// Eight iterations come close from below, so that the largest singular value of what a layer uses is 1 or little more.
TEST(WeightForms, OfSpectralNormHaveTheLargestSingularValueOne) {
  constexpr std::size_t kRows = 45, kColumns = 16;
  Graph graph;
  Parameters parameters(graph, DType::f64);
  const Wire weight = parameters.make({3, 3, 5, 16}, {.name = "weight", .init = Init::normal(0.3), .role = "conv"});
  graph.output("formed", formed(parameters, weight, WeightForm::spectral, {.name = {}, .init = Init::constant(1)}));
  CpuSession session(test::plain_plan(graph), {.threads = 1});
  initialise(session, parameters.specs(), 4);
  session.run();
  const auto w = session.tensor<double>("formed");
  std::vector<double> u(kColumns, 1), v(kRows);
  double largest = 0;
  for (int iteration = 0; iteration < 2000; ++iteration) {
    double length = 0;
    for (std::size_t row = 0; row < kRows; ++row) {
      v[row] = 0;
      for (std::size_t column = 0; column < kColumns; ++column) v[row] += w[row * kColumns + column] * u[column];
    }
    for (std::size_t column = 0; column < kColumns; ++column) {
      u[column] = 0;
      for (std::size_t row = 0; row < kRows; ++row) u[column] += w[row * kColumns + column] * v[row];
      length += u[column] * u[column];
    }
    largest = std::pow(length, 0.25);  // |W^T W u| of a u of length 1 is the square of it
    for (double& number : u) number /= std::sqrt(length);
  }
  EXPECT_GE(largest, 1 - 1e-9);
  EXPECT_LT(largest, 1.1);
}

// A gain of 0 is the learned gain's, so that the weight below it keeps a direction.
TEST(WeightForms, StartWithTheSizeThatPlainWeightsHave) {
  for (const char* scheme : {"pre", "deepnorm", "x + f(norm(x))"}) {
    ModelConfig config = tiny("decoder", scheme, DType::f64);
    config.width = 48;
    config.weight_form = WeightForm::weight_norm;
    Graph graph;
    const Model model = build_model(graph, config);
    graph.output("loss", model.loss);
    CpuSession session(test::plain_plan(graph), {.threads = 1});
    initialise(session, model.parameters, 1);
    const auto weight = session.tensor<double>("layers.1.attn.qkv.weight");
    const auto gain = session.tensor<double>("layers.1.attn.qkv.weight_gain");
    // Queries, whose rules of deepnorm are those of plain weights, against values, which start smaller there.
    const double beta = std::string(scheme) == "deepnorm" ? std::pow(8.0 * 3, -0.25) : 1;
    EXPECT_NEAR(gain[100] / gain[0], beta, 1e-12) << scheme;
    double squares = 0;
    for (std::size_t row = 0; row < 48; ++row) squares += std::pow(weight[row * 144], 2);
    EXPECT_NEAR(std::sqrt(squares) / gain[0], 1, 0.4);
  }
  ModelConfig fixup = tiny_resnet("fixup", DType::f64);
  fixup.weight_form = WeightForm::standardised;
  Graph graph;
  const Model model = build_model(graph, fixup);
  graph.output("loss", model.loss);
  CpuSession session(test::plain_plan(graph), {.threads = 1});
  initialise(session, model.parameters, 1);
  EXPECT_EQ(session.tensor<double>("layers.1.conv.out.weight_gain")[0], 0);
  EXPECT_NE(session.tensor<double>("layers.1.conv.out.weight")[0], 0);
}

TEST(Blocks, OfConvNeXtHalveTheStreamBeforeTheyReadIt) {
  ModelConfig config = tiny_resnet("convnext");
  config.layers = 4;
  config.sizes.insert({{"stages", 2}, {"stem", 2}});
  set_size(config, "image_width", 8);
  Graph graph;
  const Model model = build_model(graph, config);
  EXPECT_EQ(graph.find("stem.weight").shape(), (Shape{2, 2, 3, 4}));
  EXPECT_EQ(graph.find("layers.2.conv.skip.weight").shape(), (Shape{2, 2, 4, 8}));
  EXPECT_EQ(graph.find("layers.2.conv.depthwise.weight").shape(), (Shape{7, 7, 1, 8}));
  EXPECT_EQ(graph.find("layers.2.conv.in.weight").shape(), (Shape{1, 1, 8, 32}));
  EXPECT_EQ(graph.find("layers.2.conv.g").shape(), Shape{8});
  EXPECT_EQ(graph.find("head_norm.gain").shape(), Shape{8});
  EXPECT_EQ(model.sites[2].stream_in.shape(), (Shape{4, 2 * 2, 8}));
  Graph shorter;
  const Model rest = build_model(shorter, config, {.order = LayerOrder{.layers = {0, 1, 3}}});
  EXPECT_EQ(rest.sites[2].stream_in.shape(), (Shape{4, 2 * 2, 8})) << "a layer that is left out still halves it";
}

TEST(Blocks, MistakesAreNamed) {
  const auto error = [](const char* scheme, auto change) {
    ModelConfig config = tiny_resnet(scheme);
    change(config);
    return test::error_of([&] {
      Graph graph;
      build_model(graph, config);
    });
  };
  EXPECT_EQ(error("convnext", [](ModelConfig& c) { c.sizes["stem"] = 4; }),
            "images of 6 x 5 do not divide into patches of 4, which model.sizes.stem asks for");
  EXPECT_EQ(error("convnext", [](ModelConfig& c) { c.sizes["kernel"] = 4; }),
            "model.sizes.kernel is 4; expected an odd number");
  EXPECT_EQ(error("resnet_d", [](ModelConfig& c) { c.sizes["deep_stem"] = 1; }),
            "model.sizes.deep_stem is given, but stem is 3; expected 7, whose kernel three of 3 x 3 replace");
  EXPECT_NE(error("x + f(x, form = \"round\")", [](ModelConfig&) {}).find("form"), std::string::npos);
  ModelConfig unit = tiny("decoder", "ngpt");
  unit.weight_form = WeightForm::standardised;
  EXPECT_NE(test::error_of([&] {
              Graph graph;
              build_model(graph, unit);
            }).find("weights of unit length have no other form"),
            std::string::npos);
}

// Variances of the stream where each block reads it, over images and channels together.
std::vector<double> stream_variances(const ModelConfig& config, std::uint64_t seed) {
  Graph graph;
  const Model model = build_model(graph, config);
  for (const SublayerSite& site : model.sites) graph.output("in/" + site.name, site.stream_in * 1.0);
  CpuSession session(test::plain_plan(graph), {.threads = 1});
  initialise(session, model.parameters, seed);
  fill_inputs(session, config, 0, seed);
  session.run();
  std::vector<double> variances;
  for (const SublayerSite& site : model.sites) {
    double squares = 0;
    const auto x = session.tensor<float>("in/" + site.name);
    for (const float v : x) squares += static_cast<double>(v) * v;
    variances.push_back(squares / static_cast<double>(x.size()));
  }
  return variances;
}

// The stream of an NF-ResNet has the variance that its formula expects, 1 + since alpha^2. Borders of an image, where a
// kernel reads zeros, take some of it.
TEST(Blocks, OfNfResNetKeepTheVarianceThatTheyExpect) {
  ModelConfig config = tiny_resnet("nf_resnet");
  config.layers = 12;
  config.width = 32;
  config.batch = 8;
  config.constants = {{"alpha", 0.5}};
  set_size(config, "stages", 1);
  set_size(config, "image_height", 16);
  set_size(config, "image_width", 16);
  std::vector<double> mean(12);
  for (const std::uint64_t seed : {1, 2, 3}) {
    const std::vector<double> one = stream_variances(config, seed);
    for (std::size_t i = 0; i < 12; ++i) mean[i] += one[i] / 3;
  }
  for (std::size_t i = 0; i < 12; ++i) {
    const double expected = 1 + 0.25 * static_cast<double>(i);
    EXPECT_GT(mean[i] / expected, 0.6) << i;
    EXPECT_LT(mean[i] / expected, 1.3) << i;
  }
  config.scheme = "x + f(relu(x))";
  config.constants = {};
  const std::vector<double> bare = stream_variances(config, 1);
  EXPECT_GT(bare[11] / bare[0], 10 * mean[11] / mean[0]) << "without expecting it, it explodes";
}

}  // namespace
}  // namespace norma
