// How large numbers are in U-Nets before anything is trained.
#include <algorithm>

#include "models/model_check.h"

namespace norma {
namespace {

ModelConfig square_unet(const std::string& scheme) {
  ModelConfig config = test::tiny("unet", scheme);
  config.layers = 3;
  config.width = 16;
  config.heads = 2;
  config.batch = 2;
  for (const char* side : {"image_height", "image_width"}) set_size(config, side, 16);
  set_size(config, "image_channels", 1);
  set_size(config, "levels", 2);
  return config;
}

// Each of the 15 blocks of the way up projects the stream and a kept answer beside it to as many channels as one of
// them has; blocks themselves start as the identity.
TEST(Unet, TheStreamKeepsItsSizeAtTheStart) {
  for (const bool transposed : {false, true}) {
    ModelConfig config = square_unet("unet");
    config.layers = 12;
    set_size(config, "levels", 3);
    if (transposed) set_size(config, "transposed", 1);
    const std::vector<double> streams = test::initial_streams(config, 3);
    ASSERT_EQ(streams.size(), 30u) << "12 + 2 + 15 blocks, and attention in the middle";
    const auto [least, most] = std::ranges::minmax_element(streams);
    EXPECT_LT(*most / *least, 4) << *least << " to " << *most;
  }
}

// He's start, which counts channels out, would make answers of one channel whose squares are twice the channels in.
TEST(Unet, AnswersAreOfSizeOneAtTheStart) {
  for (const char* scheme : {"resnet_v2", "pre"}) {
    const ModelConfig config = square_unet(scheme);
    Graph graph;
    const Model model = build_model(graph, config, {.logits = true});
    graph.output("logits", model.logits);
    CpuSession session(test::plain_plan(graph), {.threads = 1});
    initialise(session, model.parameters, 1);
    test::fill_inputs(session, config);
    session.run();
    double square = 0;
    for (const float x : session.tensor<float>("logits")) square += x * x;
    square /= static_cast<double>(session.tensor<float>("logits").size());
    EXPECT_GT(square, 0.1) << scheme;
    EXPECT_LT(square, 3) << scheme;
  }
}

}  // namespace
}  // namespace norma
