// Recomputation segments: the same gradients bit for bit, for memory that grows like the square root of the depth.
#include <algorithm>
#include <array>
#include <cmath>

#include "check.h"
#include "graph/test_ops.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

constexpr std::int64_t kRows = 64, kWidth = 16;

// `layers` residual layers, each a segment that saves several tensors for its backward pass.
void build_chain(Graph& g, int layers) {
  Wire x = g.input("x", {{kRows, kWidth}, DType::f32});
  for (int layer = 0; layer < layers; ++layer) {
    const auto scope = g.scope("layers." + std::to_string(layer));
    const auto segment = g.segment();
    const Wire gain = g.parameter("gain", {{kWidth}, DType::f32}), bias = g.parameter("bias", {{kWidth}, DType::f32});
    x = x + tanh(sigmoid(x * gain) * tanh(x + bias)) * 0.1;
  }
  const Wire loss = mean_all(square(x));
  g.output("loss", loss);
  const Wires parameters = g.parameters();
  const Wires gradients = differentiate(loss, parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) g.output("d/" + parameters[i].name(), gradients[i]);
}

std::vector<float> results(int layers, int every, std::int64_t* transient = nullptr) {
  Graph g;
  build_chain(g, layers);
  CpuSession session(test::test_plan(g, {.recompute_every = every}));
  if (transient != nullptr) *transient = session.plan().transient_bytes();
  test::randomise_all(session);
  session.run();
  std::vector<float> all;
  for (const std::string& name : session.plan().slot_names(Role::computed)) {
    const std::span<float> tensor = session.tensor<float>(name);
    all.insert(all.end(), tensor.begin(), tensor.end());
  }
  return all;
}

TEST(Recompute, GradientsHaveTheSameBits) {
  const std::vector<float> kept = results(10, 0);
  EXPECT_TRUE(std::all_of(kept.begin(), kept.end(), [](float v) { return std::isfinite(v); }));
  for (const int every : {1, 2, 3, 4, 9, 10, 100}) EXPECT_EQ(results(10, every), kept) << "every " << every;
}

std::int64_t transient_bytes(int layers, int every) {
  Graph g;
  build_chain(g, layers);
  return test::test_plan(g, {.recompute_every = every})->transient_bytes();
}

TEST(Recompute, MemoryGrowsLikeTheSquareRootOfTheDepth) {
  // The gradients of the parameters are outputs and grow with the depth in any case.
  const auto activations = [](int layers, int every) {
    return static_cast<double>(transient_bytes(layers, every) -
                               2 * layers * align_up(kWidth * static_cast<std::int64_t>(sizeof(float))));
  };
  const double kept_64 = activations(64, 0), kept_256 = activations(256, 0);
  const double root_64 = activations(64, 8), root_256 = activations(256, 16);
  EXPECT_NEAR(kept_256 / kept_64, 4, 0.3);  // linear
  EXPECT_NEAR(root_256 / root_64, 2, 0.3);  // square root
  EXPECT_LT(root_64, kept_64 / 3);
  EXPECT_LT(root_256, kept_256 / 6);
}

// Layers that widen their stream and come back: what is wide is made from what stays anyway.
void build_widening(Graph& g, int layers) {
  constexpr std::int64_t kTimes = 4;
  Wire x = g.input("x", {{kRows, kWidth}, DType::f32});
  for (int layer = 0; layer < layers; ++layer) {
    const auto scope = g.scope("layers." + std::to_string(layer));
    const auto segment = g.segment();
    const Wire narrow = tanh(x * g.parameter("gain", {{kWidth}, DType::f32}));  // its own derivative reads it
    const Wire wide = broadcast_to(narrow, {kTimes, kRows, kWidth});
    x = x + reshape(sum_to(wide * wide, {1, kRows, kWidth}), {kRows, kWidth}) * 0.1;
  }
  const Wire loss = mean_all(square(x));
  g.output("loss", loss);
  const Wires parameters = g.parameters();
  const Wires gradients = differentiate(loss, parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) g.output("d/" + parameters[i].name(), gradients[i]);
}

TEST(Recompute, LeanHasTheSameBitsAndLessMemory) {
  std::vector<float> all[2];
  double bytes[2] = {};
  for (const Keep keep : {Keep::all, Keep::lean}) {
    const auto at = static_cast<std::size_t>(keep);
    Graph g;
    build_widening(g, 12);
    CpuSession session(test::test_plan(g, {.keep = keep}));
    bytes[at] = static_cast<double>(session.plan().transient_bytes());
    test::randomise_all(session);
    session.run();
    for (const std::string& name : session.plan().slot_names(Role::computed)) {
      const std::span<float> tensor = session.tensor<float>(name);
      all[at].insert(all[at].end(), tensor.begin(), tensor.end());
    }
  }
  EXPECT_TRUE(std::all_of(all[0].begin(), all[0].end(), [](float v) { return std::isfinite(v); }));
  EXPECT_EQ(all[0], all[1]);
  EXPECT_LT(bytes[1], 0.5 * bytes[0]);
}

// A chain of second editions over layers would make all of them live at once.
TEST(Recompute, LeanComputesNothingAgainFromAnotherLayersSecondEdition) {
  Graph g;
  build_widening(g, 6);
  const auto plan = test::test_plan(g, {.keep = Keep::lean});
  int again = 0;
  for (const Node& node : plan->nodes()) {
    const bool second = plan->values()[static_cast<std::size_t>(node.outputs[0])].name.ends_with("~");
    again += second ? 1 : 0;
    for (const int id : node.inputs) {
      const Value& value = plan->values()[static_cast<std::size_t>(id)];
      if (!second || !value.name.ends_with("~")) continue;
      EXPECT_EQ(plan->nodes()[static_cast<std::size_t>(value.producer)].scope, node.scope);
    }
  }
  EXPECT_GE(again, 5);
}

TEST(Recompute, LeanAndSegmentsExcludeEachOther) {
  Graph g;
  build_chain(g, 3);
  const std::string error = test::error_of([&] { test::test_plan(g, {.recompute_every = 2, .keep = Keep::lean}); });
  EXPECT_EQ(error, "keep is lean and recompute_every is 2: choose one, either keeps less than all activations");
}

TEST(Recompute, GraphsWithoutSegmentsAreLeftAlone) {
  Graph g;
  const Wire x = g.parameter("x", {{8}, DType::f32});
  const Wire wrt[] = {x};
  g.output("dx", differentiate(sum_all(tanh(x)), wrt)[0]);
  EXPECT_NO_THROW(test::test_plan(g, {.recompute_every = 4}));
  Graph lean;
  const Wire y = lean.parameter("x", {{8}, DType::f32});
  lean.output("dx", differentiate(sum_all(tanh(y)), std::array{y})[0]);
  const auto plan = test::test_plan(lean, {.keep = Keep::lean});
  for (const Value& value : plan->values()) EXPECT_FALSE(value.name.ends_with("~")) << value.name;
}

// A node that changes a state must run once, recomputation or not.
TEST(Recompute, UpdatesInsideASegmentRunOnce) {
  for (const int every : {0, 1}) {
    Graph g;
    Wire x = g.input("x", {{4}, DType::f32});
    const Wire w = g.parameter("w", {{4}, DType::f32});
    for (int layer = 0; layer < 3; ++layer) {
      const auto segment = g.segment();
      const Wire seen = g.state("seen." + std::to_string(layer), {{4}, DType::f32});
      const Wire h = tanh(x * w);
      test::accumulate(seen, h);
      x = x + h * h;
    }
    const Wire wrt[] = {w};
    g.output("dw", differentiate(sum_all(x), wrt)[0]);
    CpuSession session(test::test_plan(g, {.recompute_every = every}));
    session.write<float>("x", std::vector<float>{1, 1, 1, 1});
    session.write<float>("w", std::vector<float>{1, 1, 1, 1});
    session.run();
    session.run();
    EXPECT_NEAR(session.tensor<float>("seen.0")[0], 2 * std::tanh(1.0f), 1e-6) << "every " << every;
  }
}

}  // namespace
}  // namespace norma
