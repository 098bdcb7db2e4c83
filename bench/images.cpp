// Image classifiers of 32 x 32 pixels: forward, backward, AdamW, beside what oneDNN's convolutions alone take, or
// beside products where a model has no others; and single convolutions and pools.
#include "bench/images.h"

#include <fmt/format.h>

#include "bench/isolate.h"
#include "bench/onednn.h"
#include "bench/prepare.h"
#include "device/cpu/cpu_session.h"
#include "norma/backends/cpu.h"
#include "norma/backends/device.h"
#include "norma/graph/differentiate.h"
#include "norma/ops/convolution.h"
#include "norma/ops/pooling.h"
#include "norma/train/step.h"

namespace norma::bench {
namespace {

struct ImageStep {
  const char *name, *family, *scheme;
  NormKind norm = NormKind::batch;
  std::int64_t layers = 9, width = 16, stem = 0;
  WeightForm form = WeightForm::plain;
};

// ResNet-20 is He et al. 2015; the others have its depth and width where they can.
constexpr ImageStep kSteps[] = {
    {"resnet-20", "resnet", "resnet_v1"},
    {"nf-resnet-20", "resnet", "nf_resnet"},
    {"resnet-20 standardised", "resnet", "resnet_v2", NormKind::batch, 9, 16, 0, WeightForm::standardised},
    {"resnet-20 weight norm", "resnet", "resnet_v2", NormKind::batch, 9, 16, 0, WeightForm::weight_norm},
    {"resnet-20 spectral", "resnet", "resnet_v2", NormKind::batch, 9, 16, 0, WeightForm::spectral},
    {"convnext", "resnet", "convnext", NormKind::layer, 6, 32, 2},
    {"mixer", "mixer", "pre", NormKind::layer, 6, 64},
    {"vit", "vit", "pre", NormKind::layer, 6, 64},
};

ModelConfig model_of(const ImageStep& step, std::int64_t batch) {
  ModelConfig config{.family = step.family, .layers = step.layers, .width = step.width, .classes = 10, .batch = batch};
  config.scheme = step.scheme;
  config.norm = step.norm;
  config.weight_form = step.form;
  for (const char* side : {"image_height", "image_width"}) set_size(config, side, 32);
  set_size(config, "image_channels", 3);
  if (step.stem > 0) set_size(config, "stem", step.stem);
  return config;
}

void bench_step(Report& report, const ImageStep& row, const Options& options) {
  const ModelConfig config = model_of(row, 64);
  const std::string name = fmt::format("step/{} 32x32 B=64", row.name);
  if (!options.wants(name)) return;
  const TrainingStep step = build_training_step(config, {});
  const auto session = make_session(step.plan, {.members = 1, .threads = options.threads});
  prepare(*session, step, config);
  const Timing timing = time_repeated([&] { session->run(Watching::no); }, 2 * options.seconds);
  const double gflop = model_flops(config) * 1e-9;
  std::string limit = "sgemm_gflops";
  if (config.family == "resnet") {
    Graph forward;
    build_model(forward, config);
    limit = fmt::format("onednn_convolution_gflops of {}", row.name);
    report.set_limit(limit, gflop / onednn_convolution_seconds(forward, options.threads, options.seconds));
  }
  report.add_rate(name, gflop, timing, "GFLOP/s", limit);
  report.add_rate(name + "/images", static_cast<double>(config.batch), timing, "images/s", "");
}

struct ConvolutionRow {
  const char* name;
  Shape x, weight;
  ConvolutionOptions options = {};
  bool transposed = false;
};

// Each pass by itself, as a share of products.
void bench_convolution(Report& report, const ConvolutionRow& row, const Options& options) {
  Graph g;
  const Wire x = g.input("x", {row.x, DType::f32}), w = g.input("w", {row.weight, DType::f32});
  const Wire y = row.transposed ? transposed_conv2d(x, w, row.options) : conv2d(x, w, row.options);
  g.output("y", y);
  const Wire out[] = {y}, dout[] = {g.input("dy", {y.shape(), DType::f32})}, wrt[] = {x, w};
  const Wires gradients = pull_back(out, dout, wrt);
  g.output("dx", gradients[0]);
  g.output("dw", gradients[1]);
  const char* const forward = row.transposed ? "conv2d_data" : "conv2d";
  const char* const data = row.transposed ? "conv2d" : "conv2d_data";
  for (const auto& [what, op] : {std::pair{"forward", forward}, {"data", data}, {"weights", "conv2d_weights"}}) {
    const std::string name = fmt::format("conv/{}/{}", row.name, what);
    if (!options.wants(name)) continue;
    const Isolated one = isolate(g, op);
    CpuSession session(one.plan, {.members = 1, .threads = options.threads});
    fill_inputs(session);
    const Timing timing = time_repeated([&] { session.run(); }, options.seconds);
    report.add_rate(name, one.cost.flops * 1e-9, timing, "GFLOP/s", "sgemm_gflops");
  }
}

void bench_pools(Report& report, const Options& options) {
  const Shape shape{64, 32, 32, 32};
  const double tensor = 4e-9 * static_cast<double>(shape.elements());
  const auto add = [&](const char* what, auto pool, double tensors) {
    const std::string name = fmt::format("pool/{}/64x32x32x32", what);
    if (!options.wants(name)) return;
    Graph g;
    g.output("y", pool(g.input("x", {shape, DType::f32})));
    CpuSession session(compile(g, cpu_backend()), {.members = 1, .threads = options.threads});
    fill_inputs(session);
    const Timing timing = time_repeated([&] { session.run(); }, options.seconds);
    report.add_rate(name, tensors * tensor, timing, "GB/s", "cache_copy_gbps");
  };
  add(
      "max 3 stride 2", [](Wire x) { return max_pool(x, {.size = 3, .stride = 2, .padding = 1}); }, 1.25);
  add(
      "average 2", [](Wire x) { return average_pool(x, 2); }, 1.25);
  add(
      "global average", [](Wire x) { return global_average_pool(x); }, 1);
}

}  // namespace

void bench_images(Report& report, const Options& options) {
  for (const ImageStep& step : kSteps) bench_step(report, step, options);
}

void bench_convolutions(Report& report, const Options& options) {
  const ConvolutionRow rows[] = {
      {"3x3 16 channels 32x32 B=64", {64, 32, 32, 16}, {3, 3, 16, 16}, {.padding = 1}},
      {"3x3 64 channels 8x8 B=64", {64, 8, 8, 64}, {3, 3, 64, 64}, {.padding = 1}},
      {"3x3 stride 2 32 channels 32x32 B=64", {64, 32, 32, 32}, {3, 3, 32, 64}, {.stride = 2, .padding = 1}},
      {"3x3 dilation 2 32 channels 16x16 B=64", {64, 16, 16, 32}, {3, 3, 32, 32}, {.padding = 2, .dilation = 2}},
      {"3x3 4 groups 64 channels 16x16 B=64", {64, 16, 16, 64}, {3, 3, 16, 64}, {.padding = 1, .groups = 4}},
      {"7x7 depthwise 64 channels 16x16 B=64", {64, 16, 16, 64}, {7, 7, 1, 64}, {.padding = 3, .groups = 64}},
      {"transposed 4x4 64 channels 16x16 B=64", {64, 16, 16, 64}, {4, 4, 32, 64}, {.stride = 2, .padding = 1}, true},
  };
  for (const ConvolutionRow& row : rows) bench_convolution(report, row, options);
  bench_pools(report, options);
}

}  // namespace norma::bench
