// The decoder and its training step: derivatives of the whole model, learning, recomputation, members, memory.
#include "norma/models/decoder.h"

#include "check.h"
#include "norma/models/fusions.h"
#include "norma/ops/adamw.h"

namespace norma {
namespace {

ModelConfig tiny(const std::string& scheme, DType dtype = DType::f32) {
  return {
      .layers = 3, .width = 24, .heads = 3, .vocabulary = 17, .batch = 4, .time = 9, .scheme = scheme, .dtype = dtype};
}

void fill_ids(Session& session, const ModelConfig& config, int member = 0) {
  for (const char* name : {"tokens", "targets"}) {
    const RandomStream stream(3, name);
    const std::span<std::int32_t> ids = session.tensor<std::int32_t>(name, member);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<std::int32_t>(stream.below(i, static_cast<std::uint64_t>(config.vocabulary)));
    }
  }
}

// Trains for some steps on one batch; returns the losses of every member in turn, then member 0's last weights.
struct Trained {
  std::vector<std::vector<float>> losses;  // [member][step]
  std::vector<float> head;
};

Trained train(const ModelConfig& config, const CompileOptions& options, const std::vector<float>& rates, int steps,
              int threads = 2) {
  const TrainingStep step = build_training_step(config, options);
  Session session(step.plan, {.members = static_cast<int>(rates.size()), .threads = threads});
  Trained result{std::vector<std::vector<float>>(rates.size()), {}};
  for (int member = 0; member < session.members(); ++member) {
    initialise(session, step.parameters, 1, member);
    fill_ids(session, config, member);
  }
  for (int t = 1; t <= steps; ++t) {
    for (int member = 0; member < session.members(); ++member) {
      const float c1 = 1 - std::pow(0.9f, static_cast<float>(t)), c2 = 1 - std::pow(0.98f, static_cast<float>(t));
      session.write<float>(
          "control", std::array{rates[static_cast<std::size_t>(member)], 0.9f, 0.98f, 1e-9f, 0.01f, c1, c2}, member);
    }
    session.run();
    for (int member = 0; member < session.members(); ++member) {
      result.losses[static_cast<std::size_t>(member)].push_back(session.tensor<float>("loss", member)[0]);
    }
  }
  const std::span<float> head = session.tensor<float>("head.weight");
  result.head.assign(head.begin(), head.end());
  return result;
}

class Schemes : public testing::TestWithParam<std::string> {};

TEST_P(Schemes, LearnsOneBatch) {
  const std::vector<float> losses = train(tiny(GetParam()), {.rewrites = all_fusions()}, {3e-3f}, 150).losses[0];
  EXPECT_NEAR(losses.front(), std::log(17.0), 0.3) << "an untrained model guesses";
  EXPECT_LT(losses.back(), 0.3 * losses.front());
}

TEST_P(Schemes, FusionsChangeNothingButRounding) {
  const std::vector<float> fused = train(tiny(GetParam()), {.rewrites = all_fusions()}, {1e-3f}, 5).losses[0];
  const std::vector<float> plain = train(tiny(GetParam()), {}, {1e-3f}, 5).losses[0];
  for (std::size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], plain[i], 2e-5f * plain[i]) << i;
}

TEST_P(Schemes, RecomputationChangesNoBit) {
  const Trained kept = train(tiny(GetParam()), {.rewrites = all_fusions()}, {1e-3f}, 4);
  for (const int every : {1, 2}) {
    const Trained again = train(tiny(GetParam()), {.rewrites = all_fusions(), .recompute_every = every}, {1e-3f}, 4);
    EXPECT_EQ(kept.losses, again.losses) << "every " << every;
    EXPECT_EQ(kept.head, again.head) << "every " << every;
  }
}

TEST_P(Schemes, MemberInCohortHasTheBitsOfTheSameModelAlone) {
  const std::vector<float> rates = {1e-3f, 3e-3f, 1e-4f};
  const Trained cohort = train(tiny(GetParam()), {.rewrites = all_fusions()}, rates, 4, 2);
  for (std::size_t member = 0; member < rates.size(); ++member) {
    for (const int threads : {1, 2, 3}) {
      const Trained alone = train(tiny(GetParam()), {.rewrites = all_fusions()}, {rates[member]}, 4, threads);
      EXPECT_EQ(cohort.losses[member], alone.losses[0]) << "member " << member << ", " << threads << " threads";
    }
  }
  EXPECT_NE(cohort.losses[0], cohort.losses[1]);
}

INSTANTIATE_TEST_SUITE_P(Some, Schemes, testing::Values("pre", "post", "deepnorm", "rezero", "residual", "realformer"),
                         [](const auto& test) { return test.param; });

TEST(DecoderMemory, ArenaIsCloseToTheLowerBoundAndRecomputationShrinksIt) {
  ModelConfig deep{.layers = 64, .width = 32, .heads = 4, .vocabulary = 64, .batch = 4, .time = 16};
  const auto bytes = [&](int every) {
    const auto plan = build_training_step(deep, {.rewrites = all_fusions(), .recompute_every = every}).plan;
    EXPECT_LE(static_cast<double>(plan->transient_bytes()), 1.1 * static_cast<double>(plan->peak_live_bytes()));
    return static_cast<double>(plan->transient_bytes());
  };
  const double kept = bytes(0), lean = bytes(8);
  EXPECT_LT(lean, 0.4 * kept);
  // Square-root growth: four times the layers, with twice the segment length, take about twice the memory.
  deep.layers = 256;
  const double four_times = bytes(16);
  EXPECT_LT(four_times, 2.6 * lean);
}

TEST(Decoder, BadConfigurationsAreNamed) {
  Graph g;
  ModelConfig config = tiny("pre");
  config.layers = 0;
  EXPECT_EQ(test::error_of([&] { build_model(g, config); }), "a stack needs at least one layer, but 0 were asked for");
  Graph h;
  config = tiny("pre");
  config.heads = 7;
  EXPECT_NE(test::error_of([&] { build_model(h, config); }).find("width 24 is not divisible by 7 heads"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
