// A whole training step: learning, fusions, recomputation, members, memory, clipping, accumulation, probes.
#include "norma/train/step.h"

#include <cmath>
#include <limits>
#include <map>

#include "check.h"
#include "elementary_backend.h"

namespace norma {
namespace {

ModelConfig tiny(const std::string& scheme, DType dtype = DType::f32) {
  return {
      .layers = 3, .width = 24, .heads = 3, .vocabulary = 17, .batch = 4, .time = 9, .scheme = scheme, .dtype = dtype};
}

void fill_ids(CpuSession& session, const ModelConfig& config, int member = 0) {
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

Trained train(const ModelConfig& config, const StepOptions& options, const std::vector<float>& rates, int steps,
              int threads = 2) {
  const TrainingStep step = build_training_step(config, options);
  CpuSession session(step.plan, {.members = static_cast<int>(rates.size()), .threads = threads});
  Trained result{std::vector<std::vector<float>>(rates.size()), {}};
  for (int member = 0; member < session.members(); ++member) {
    initialise(session, step.parameters, 1, member);
    fill_ids(session, config, member);
  }
  for (int t = 1; t <= steps; ++t) {
    for (int member = 0; member < session.members(); ++member) {
      const ControlBlock wide = control_block(options.optimiser, rates[static_cast<std::size_t>(member)], 1, t);
      session.write<float>("control", std::vector<float>(wide.begin(), wide.end()), member);
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
  const std::vector<float> losses = train(tiny(GetParam()), {}, {3e-3f}, 150).losses[0];
  EXPECT_NEAR(losses.front(), std::log(17.0), 0.3) << "an untrained model guesses";
  EXPECT_LT(losses.back(), 0.3 * losses.front());
}

TEST_P(Schemes, FusionsChangeNothingButRounding) {
  const std::vector<float> fused = train(tiny(GetParam()), {}, {1e-3f}, 5).losses[0];
  const std::vector<float> plain = train(tiny(GetParam()), {.fuse = false}, {1e-3f}, 5).losses[0];
  for (std::size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], plain[i], 2e-5f * plain[i]) << i;
}

TEST_P(Schemes, ABackendOfElementaryOpsTrainsTheSame) {
  const test::ElementaryBackend elementary;
  const std::vector<float> fused = train(tiny(GetParam()), {}, {1e-3f}, 5).losses[0];
  const std::vector<float> plain = train(tiny(GetParam()), {.backend = &elementary}, {1e-3f}, 5).losses[0];
  for (std::size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], plain[i], 2e-5f * plain[i]) << i;
}

TEST_P(Schemes, RecomputationChangesNoBit) {
  const Trained kept = train(tiny(GetParam()), {}, {1e-3f}, 4);
  for (const int every : {1, 2}) {
    const Trained again = train(tiny(GetParam()), {.recompute_every = every}, {1e-3f}, 4);
    EXPECT_EQ(kept.losses, again.losses) << "every " << every;
    EXPECT_EQ(kept.head, again.head) << "every " << every;
  }
  const Trained lean = train(tiny(GetParam()), {.keep = Keep::lean}, {1e-3f}, 4);
  EXPECT_EQ(kept.losses, lean.losses);
  EXPECT_EQ(kept.head, lean.head);
}

TEST_P(Schemes, MemberInCohortHasTheBitsOfTheSameModelAlone) {
  const std::vector<float> rates = {1e-3f, 3e-3f, 1e-4f};
  const Trained cohort = train(tiny(GetParam()), {}, rates, 4, 2);
  for (std::size_t member = 0; member < rates.size(); ++member) {
    for (const int threads : {1, 2, 3}) {
      const Trained alone = train(tiny(GetParam()), {}, {rates[member]}, 4, threads);
      EXPECT_EQ(cohort.losses[member], alone.losses[0]) << "member " << member << ", " << threads << " threads";
    }
  }
  EXPECT_NE(cohort.losses[0], cohort.losses[1]);
}

INSTANTIATE_TEST_SUITE_P(Some, Schemes, testing::Values("pre", "post", "deepnorm", "rezero", "residual", "realformer"),
                         [](const auto& test) { return test.param; });

TEST(StepMemory, ArenaIsCloseToTheLowerBoundAndRecomputationShrinksIt) {
  // So many tokens that activations outweigh the gradients, which all stay until their norm is known.
  ModelConfig deep{.layers = 64, .width = 32, .heads = 4, .vocabulary = 64, .batch = 64, .time = 16};
  const auto bytes = [&](int every) {
    const auto plan = build_training_step(deep, {.recompute_every = every}).plan;
    EXPECT_LE(static_cast<double>(plan->transient_bytes()), 1.1 * static_cast<double>(plan->peak_live_bytes()));
    return static_cast<double>(plan->transient_bytes());
  };
  const auto wide = build_training_step(deep, {.keep = Keep::lean}).plan;
  EXPECT_LT(static_cast<double>(wide->transient_bytes()), 0.6 * bytes(0));
  const double kept = bytes(0), lean = bytes(8);
  EXPECT_LT(lean, 0.4 * kept);
  // Square-root growth: four times the layers, with twice the segment length, take about twice the memory.
  deep.layers = 256;
  const double four_times = bytes(16);
  EXPECT_LT(four_times, 2.6 * lean);
}

// One member trained by hand: k runs of the plan per step, each on its own batch.
std::vector<float> train_accumulating(int batches, bool together) {
  ModelConfig config = tiny("pre");
  if (together) config.batch *= batches;
  const TrainingStep step = build_training_step(config, {.accumulate = together ? 1 : batches});
  CpuSession session(step.plan);
  initialise(session, step.parameters, 1);
  const std::size_t rows = static_cast<std::size_t>(4 * config.time);
  const auto fill = [&](const char* name, int batch, std::size_t at) {
    const RandomStream stream(3, name, static_cast<std::uint64_t>(batch));
    for (std::size_t i = 0; i < rows; ++i)
      session.tensor<std::int32_t>(name)[at + i] = static_cast<std::int32_t>(stream.below(i, 17));
  };
  for (int t = 1; t <= 3; ++t) {
    ControlBlock control = control_block({}, 1e-2, 1, t);
    for (int batch = 0; batch < batches; ++batch) {
      for (const char* name : {"tokens", "targets"})
        fill(name, batch, together ? rows * static_cast<std::size_t>(batch) : 0);
      if (together && batch + 1 < batches) continue;
      control[OptimiserControl::active] = batch + 1 == batches ? 1 : 0;
      session.write<float>("control", std::vector<float>(control.begin(), control.end()));
      if (!together) session.write<float>("first", std::array{batch == 0 ? 1.0f : 0.0f});
      session.run();
    }
  }
  const auto head = session.tensor<float>("layers.1.ffn.out.weight");
  return {head.begin(), head.end()};
}

TEST(Accumulation, OfSmallBatchesIsOneLargeBatch) {
  const std::vector<float> small = train_accumulating(3, false), large = train_accumulating(3, true);
  for (std::size_t i = 0; i < small.size(); ++i) ASSERT_NEAR(small[i], large[i], 3e-4) << i;
}

TEST(Clipping, ScalesTheWholeGradientAndLeavesSmallOnesAlone) {
  const ModelConfig config = tiny("pre");
  // One step of plain gradient descent: the change of a weight is the clipped gradient.
  const auto change = [&](float clip) {
    const TrainingStep step = build_training_step(config, {.optimiser = {.name = OptimiserName::sgd, .beta1 = 0}});
    CpuSession session(step.plan);
    initialise(session, step.parameters, 1);
    fill_ids(session, config);
    const std::vector<float> before(session.tensor<float>("head.weight").begin(),
                                    session.tensor<float>("head.weight").end());
    const ControlBlock control = control_block({.beta1 = 0}, 1, 1, 1);
    session.write<float>("control", std::vector<float>(control.begin(), control.end()));
    session.write<float>("clip", std::array{clip});
    session.run();
    double squares = 0;
    for (std::size_t i = 0; i < before.size(); ++i)
      squares += std::pow(session.tensor<float>("head.weight")[i] - before[i], 2);
    return std::pair{std::sqrt(squares), static_cast<double>(session.tensor<float>("gradient_norm")[0])};
  };
  const auto [free, norm] = change(0);
  EXPECT_NEAR(change(static_cast<float>(norm * 2)).first, free, 1e-6);
  EXPECT_NEAR(change(static_cast<float>(norm / 4)).first, free / 4, 1e-6);
}

TEST(Probes, ReportWhatTheModelHolds) {
  const ModelConfig config = tiny("pre");
  const TrainingStep step = build_training_step(config);
  CpuSession session(step.plan);
  initialise(session, step.parameters, 1);
  fill_ids(session, config);
  std::map<std::string, std::vector<float>> before;
  for (const ParameterSpec& spec : step.parameters) {
    const auto tensor = session.tensor<float>(spec.name);
    before[spec.name] = {tensor.begin(), tensor.end()};
  }
  const ControlBlock control = control_block({}, 1e-2, 1, 1);
  session.write<float>("control", std::vector<float>(control.begin(), control.end()));
  session.run();
  double all_squares = 0;
  for (std::size_t i = 0; i < step.parameters.size(); ++i) {
    const std::string& name = step.parameters[i].name;
    const ParameterPlace& place = step.places[i];
    double changed = 0;
    for (std::size_t k = 0; k < before[name].size(); ++k)
      changed += std::pow(session.tensor<float>(name)[k] - before[name][k], 2);
    EXPECT_NEAR(session.tensor<double>(TrainingStep::kUpdateSquares)[i], changed, 1e-3 * changed) << name;
    EXPECT_EQ(place.elements, static_cast<double>(before[name].size()));
    all_squares += session.tensor<float>(TrainingStep::kGradientSquares)[i];
  }
  EXPECT_NEAR(std::sqrt(all_squares), session.tensor<float>("gradient_norm")[0], 1e-4);
  std::map<std::string, int> kinds;
  for (const ProbeSite& probe : step.probes) {
    const auto output = [&](std::size_t index) {
      return probe.kind == ProbeSite::Kind::attention ? session.tensor<float>(probe.output)[index]
                                                      : session.tensor<double>(probe.output)[index];
    };
    for (const auto& [name, value] : read_probe(probe, output)) {
      EXPECT_TRUE(std::isfinite(value)) << name << " " << probe.site;
      if (name != "logit_max") {
        EXPECT_GT(value, 0) << name << " " << probe.site;
      }
      ++kinds[std::string(name)];
    }
  }
  EXPECT_EQ(kinds["stream_rms"], 6);
  EXPECT_EQ(kinds["branch_rms"], 6);
  EXPECT_EQ(kinds["logit_max"], 3);
  EXPECT_EQ(kinds["entropy"], 3);
}

TEST(Probes, ChangeNoBitOfTraining) {
  const Trained with = train(tiny("pre"), {}, {1e-3f}, 4), without = train(tiny("pre"), {.probes = false}, {1e-3f}, 4);
  EXPECT_EQ(with.losses, without.losses);
  EXPECT_EQ(with.head, without.head);
}

TEST(Step, KeepsTheWeightsWhenLossOrGradientsAreNotFinite) {
  for (const bool large : {false, true}) {
    const ModelConfig config = tiny("pre");
    const TrainingStep step = build_training_step(config);
    CpuSession session(step.plan);
    initialise(session, step.parameters, 1);
    fill_ids(session, config);
    if (large) {
      // The same loss, with a gradient of the gain whose square is out of range.
      for (float& weight : session.tensor<float>("head.weight")) weight *= 1e25f;
      for (float& gain : session.tensor<float>("final.norm1.gain")) gain *= 1e-25f;
    } else {
      session.tensor<float>("head.weight")[5] = std::numeric_limits<float>::infinity();
    }
    const auto weights = session.tensor<float>("layers.0.ffn.in.weight");
    const std::vector<float> before(weights.begin(), weights.end());
    const ControlBlock control = control_block({}, 1e-2, 1, 1);
    session.write<float>("control", std::vector<float>(control.begin(), control.end()));
    session.run();
    EXPECT_EQ(std::isfinite(session.tensor<float>("loss")[0]), large);
    EXPECT_FALSE(std::isfinite(session.tensor<float>("gradient_norm")[0]));
    EXPECT_TRUE(std::equal(before.begin(), before.end(), weights.begin())) << large;
  }
}

TEST(Layers, AreReadOffNames) {
  EXPECT_EQ(layer_of("layers.3.attn.out.weight"), "layers.3");
  EXPECT_EQ(layer_of("encoder.layers.12.ffn.in.bias"), "encoder.layers.12");
  EXPECT_EQ(layer_of("embedding.token"), "embedding");
  EXPECT_EQ(layer_of("decoder.final.norm1.gain"), "decoder.final");
  EXPECT_EQ(layer_of("head.weight"), "head");
}

}  // namespace
}  // namespace norma
