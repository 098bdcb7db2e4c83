// Residual networks of convolutions at the start: what the theory says of stream, shares and gradients, beside
// networks.
#include <cmath>

#include "models/model_check.h"
#include "norma/models/branch_tables.h"
#include "norma/norms/norm.h"
#include "norma/theory/predict.h"

namespace norma {
namespace {

using test::fill_inputs;
using test::tiny;

ModelConfig one_stage(const std::string& scheme, NormKind kind, std::int64_t layers) {
  ModelConfig config = tiny("resnet", scheme);
  config.layers = layers;
  config.norm = kind;
  config.activation = Activation::relu;
  config.width = 24;
  config.batch = 8;
  for (const char* side : {"image_height", "image_width"}) set_size(config, side, 10);
  set_size(config, "image_channels", 3);
  set_size(config, "stages", 1);
  return config;
}

struct Measured {
  std::vector<double> rms;       // of the stream behind each block
  std::vector<double> gradient;  // norm of that by the last weight of each block
};

// Root mean squares over seeds.
Measured measured(const ModelConfig& config, int seeds) {
  Graph graph;
  const Model model = build_model(graph, config);
  Wires weights;
  for (const SublayerSite& site : model.sites) {
    graph.output("out/" + site.name, site.stream_out * 1.0);
    weights.push_back(graph.find(site.name + ".out.weight"));
  }
  const Wires gradients = differentiate(model.loss, weights);
  for (std::size_t i = 0; i < gradients.size(); ++i) graph.output("d/" + model.sites[i].name, gradients[i]);
  CpuSession session(test::plain_plan(graph), {.threads = 1});
  Measured sums{std::vector<double>(model.sites.size()), std::vector<double>(model.sites.size())};
  const auto square_of = [&](const std::string& name, double divided) {
    double sum = 0;
    for (const float v : session.tensor<float>(name)) sum += static_cast<double>(v) * v;
    return sum / divided / seeds;
  };
  for (int seed = 1; seed <= seeds; ++seed) {
    initialise(session, model.parameters, static_cast<std::uint64_t>(seed));
    fill_inputs(session, config, 0, static_cast<std::uint64_t>(seed));
    session.run();
    for (std::size_t i = 0; i < model.sites.size(); ++i) {
      const double elements = static_cast<double>(model.sites[i].stream_out.shape().elements());
      sums.rms[i] += square_of("out/" + model.sites[i].name, elements);
      sums.gradient[i] += square_of("d/" + model.sites[i].name, 1);
    }
  }
  for (std::size_t i = 0; i < sums.rms.size(); ++i)
    sums.rms[i] = std::sqrt(sums.rms[i]), sums.gradient[i] = std::sqrt(sums.gradient[i]);
  return sums;
}

// Over blocks of the second half, in logarithms.
double exponent(const std::vector<double>& values) {
  double x = 0, y = 0, xx = 0, xy = 0, n = 0;
  for (std::size_t i = values.size() / 2; i < values.size(); ++i, ++n) {
    const double a = std::log(static_cast<double>(i + 1)), b = std::log(values[i]);
    x += a, y += b, xx += a * a, xy += a * b;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

TEST(ResNetTheory, PredictsTheStream) {
  const std::pair<const char*, NormKind> cases[] = {{"resnet_v2", NormKind::batch}, {"resnet_v2", NormKind::instance},
                                                    {"resnet_v2", NormKind::layer}, {"resnet_v2", NormKind::group},
                                                    {"pre", NormKind::batch},       {"peri", NormKind::rms},
                                                    {"skipinit", NormKind::layer}};
  for (const auto& [scheme, kind] : cases) {
    SCOPED_TRACE(std::string(scheme) + " " + std::string(name_of(kind)));
    const ModelConfig config = one_stage(scheme, kind, 16);
    const Prediction theory = predict(config);
    const Measured networks = measured(config, 3);
    double worst = 1;
    for (std::size_t i = 1; i < networks.rms.size(); ++i) {
      const double ratio = networks.rms[i] / theory.streams[i].rms;
      worst = std::max({worst, ratio, 1 / ratio});
    }
    std::printf("%-10s %-8s stream within %.3f\n", scheme, std::string(name_of(kind)).c_str(), worst);
    EXPECT_LT(worst, 1.2);
  }
}

// De and Smith 2020: with BatchNorm every branch adds the same variance, so that the stream's grows linearly and the
// share of branch l is about 1/sqrt(l) of the stream's rms, 1/l of its variance.
TEST(ResNetTheory, OfBatchNormIsLinearGrowthInTheoryAndNetworks) {
  const ModelConfig config = one_stage("resnet_v2", NormKind::batch, 48);
  const ModelTheory theory(config);
  const Prediction prediction = theory.at(48);
  std::vector<double> predicted;
  for (const StreamTheory& stream : prediction.streams) predicted.push_back(stream.rms * stream.rms);
  std::vector<double> found = measured(config, 3).rms;
  for (double& rms : found) rms *= rms;
  std::printf("variance of the stream goes as l^%.2f in theory, l^%.2f in networks\n", exponent(predicted),
              exponent(found));
  EXPECT_NEAR(exponent(predicted), 1, 0.1);
  EXPECT_NEAR(exponent(found), 1, 0.25);
  const std::vector<double> shares = theory.shares(prediction);
  ASSERT_EQ(shares.size(), 48u);
  EXPECT_NEAR(shares[47] * std::sqrt(48.0), 1, 0.2);
  EXPECT_NEAR(shares[11] / shares[47], 2, 0.2);
}

// Gradients of the blocks of a normed network are alike up to the root of depth; without a norm they explode.
TEST(ResNetTheory, GradientsAreWellConditionedWithBatchNormAndExplodeWithout) {
  const auto ratio = [](const std::vector<double>& g) { return g.front() / g.back(); };
  const ModelConfig normed = one_stage("resnet_v2", NormKind::batch, 32);
  const ModelConfig bare = one_stage("x + f(relu(x))", NormKind::batch, 32);
  const Measured with = measured(normed, 3), without = measured(bare, 3);
  std::printf("first over last gradient: %.2f with BatchNorm; stream %.3g times larger without one\n",
              ratio(with.gradient), without.rms.back() / without.rms.front());
  // As l^-1/2 forward and back: the first block's is about 32/2 times the last's, not 2^32.
  EXPECT_LT(ratio(with.gradient), 40);
  EXPECT_GT(ratio(with.gradient), 1.0 / 12);
  EXPECT_LT(with.rms.back() / with.rms.front(), 8);
  EXPECT_GT(without.rms.back() / without.rms.front(), 1e3);
  // What explodes forward explodes backward: each block hands down more than it was given.
  const Prediction theory = predict(bare);
  EXPECT_GT(theory.streams.front().gradient_rms / theory.streams.back().gradient_rms, 1e3);
  const Prediction calm = predict(normed);
  EXPECT_LT(calm.streams.front().gradient_rms / calm.streams.back().gradient_rms, 60);
}

TEST(ResNetTheory, WhatItDoesNotCoverIsNamed) {
  const auto error = [](ModelConfig config) { return test::error_of([&] { predict(config); }); };
  ModelConfig staged = one_stage("resnet_v2", NormKind::batch, 6);
  set_size(staged, "stages", 2);
  EXPECT_NE(error(staged).find("a stream whose shape changes; it predicts residual networks of one stage"),
            std::string::npos);
  EXPECT_NE(error(one_stage("resnet_v1", NormKind::batch, 6)).find("a stem with a norm"), std::string::npos);
  EXPECT_NE(error(one_stage("relu(x + norm(f(x)))", NormKind::batch, 6)).find("rectified in every layer"),
            std::string::npos);
  EXPECT_NE(error(one_stage("convnext", NormKind::layer, 6)).find("inverted blocks"), std::string::npos);
  EXPECT_NE(error(one_stage("nf_resnet", NormKind::layer, 6)).find("standardised"), std::string::npos);
  EXPECT_NE(error(tiny("decoder", "x + f(batchnorm(x))")).find("BatchNorm, whose statistics go beyond a token"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
