// ResNet-20 on images of 32 x 32 (He et al. 2015): forward, backward, AdamW; and what oneDNN's convolutions alone take.
#include "bench/images.h"

#include "bench/onednn.h"
#include "bench/prepare.h"
#include "norma/backends/device.h"
#include "norma/train/step.h"

namespace norma::bench {
namespace {

ModelConfig resnet20(std::int64_t batch) {
  ModelConfig config{.family = "resnet", .layers = 9, .width = 16, .classes = 10, .batch = batch};
  config.scheme = "resnet_v1";
  config.norm = NormKind::batch;
  for (const char* side : {"image_height", "image_width"}) set_size(config, side, 32);
  set_size(config, "image_channels", 3);
  return config;
}

}  // namespace

void bench_images(Report& report, const Options& options) {
  const ModelConfig config = resnet20(64);
  const std::string name = "step/resnet-20 32x32 B=64";
  if (!options.wants(name)) return;
  const TrainingStep step = build_training_step(config, {});
  const auto session = make_session(step.plan, {.members = 1, .threads = options.threads});
  prepare(*session, step, config);
  const Timing timing = time_repeated([&] { session->run(Watching::no); }, 2 * options.seconds);
  Graph forward;
  build_model(forward, config);
  const double alone = onednn_convolution_seconds(forward, options.threads, options.seconds);
  const double gflop = model_flops(config) * 1e-9;
  report.set_limit("onednn_convolution_gflops", gflop / alone);
  report.add_rate(name, gflop, timing, "GFLOP/s", "onednn_convolution_gflops");
  report.add_rate(name + "/images", static_cast<double>(config.batch), timing, "images/s", "");
}

}  // namespace norma::bench
