// Members that train side by side: learning, independence, divergence, recovery, and exact resumption in memory.
#include "norma/train/cohort.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "check.h"
#include "norma/train/data.h"
#include "temporary_folder.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

// A small run, changed by lines such as "train.lr = 1".
RunConfig small_run(const std::string& changes = "") {
  RunConfig config = parse_config(R"(
model.layers = 2
model.width = 16
model.heads = 2
model.batch = 4
model.time = 12
train.steps = 60
train.lr = 3e-3
)",
                                  "test");
  std::istringstream lines(changes);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    override_config(config, line.substr(0, line.find(' ')) + "=" + line.substr(equals + 1));
  }
  return config;
}

Cohort make_cohort(const RunConfig& config) { return {config, open_data(config)}; }

std::vector<float> weights(Cohort& cohort, int member = 0) {
  const auto tensor = cohort.session().tensor<float>("layers.1.ffn.out.weight", member);
  return {tensor.begin(), tensor.end()};
}

TEST(Cohort, LearnsSentences) {
  Cohort cohort = make_cohort(small_run("data.task = \"sentences\""));
  cohort.evaluate();
  const double before = *cohort.member(0).evaluation_loss;
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(cohort.train_step().empty());
  cohort.evaluate();
  EXPECT_LT(*cohort.member(0).evaluation_loss, before - 0.3);
  EXPECT_EQ(cohort.step(), 60);
  EXPECT_EQ(cohort.tokens_per_step(), 48);
  EXPECT_GT(cohort.member(0).gradient_norm, 0);
}

TEST(Cohort, TheBestLossIsTheLowest) {
  Cohort cohort = make_cohort(small_run());
  double lowest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 20; ++i) {
    cohort.train_step();
    lowest = std::min(lowest, cohort.member(0).loss);
  }
  EXPECT_EQ(cohort.member(0).best_loss, lowest);
}

TEST(Cohort, AMemberHasTheBitsOfTheSameRunAlone) {
  Cohort both =
      make_cohort(small_run("members.lr = [1e-3, 1e-2]\nmembers.seed = [5, 6]\nmembers.dropout = [0.1, 0.2]"));
  Cohort alone = make_cohort(small_run("train.lr = 1e-2\ntrain.seed = 6\ntrain.dropout = 0.2"));
  for (int i = 0; i < 8; ++i) {
    both.train_step();
    alone.train_step();
    ASSERT_EQ(both.member(1).loss, alone.member(0).loss) << i;
  }
  EXPECT_EQ(weights(both, 1), weights(alone));
  EXPECT_NE(weights(both, 0), weights(alone));
}

std::map<std::string, double> probes_of(Cohort& cohort) {
  std::map<std::string, double> found;
  for (const ProbeValue& probe : cohort.probes(0)) found[probe.kind + "/" + probe.site] = probe.value;
  return found;
}

TEST(Cohort, WatchesOnlyTheStepsThatAreAskedFor) {
  Cohort always = make_cohort(small_run()), sometimes = make_cohort(small_run());
  for (int step = 1; step <= 9; ++step) {
    always.train_step();
    sometimes.train_step(step % 3 == 0 ? Watching::yes : Watching::no);
    const std::map<std::string, double> all = probes_of(always), some = probes_of(sometimes);
    ASSERT_TRUE(all.contains("stream_rms/layers.0.attn"));
    if (step % 3 == 0) {
      EXPECT_EQ(some, all) << step;
    } else {
      EXPECT_FALSE(some.contains("stream_rms/layers.0.attn")) << step;
      EXPECT_EQ(some.at("update_rms/layers.1"), all.at("update_rms/layers.1")) << step;
      EXPECT_EQ(some.at("gradient_rms/layers.1"), all.at("gradient_rms/layers.1")) << step;
    }
  }
  EXPECT_EQ(weights(always), weights(sometimes));
}

TEST(Cohort, WatchesALossInDoubt) {
  Cohort cohort = make_cohort(small_run("detect.window = 3"));
  for (int step = 0; step < 5; ++step) cohort.train_step(Watching::no);
  for (float& weight : cohort.session().tensor<float>("head.weight")) weight *= 1000;
  cohort.train_step(Watching::no);
  EXPECT_EQ(cohort.member(0).spikes, 1);
  EXPECT_FALSE(probes_of(cohort).contains("stream_rms/layers.0.attn"));
  cohort.train_step(Watching::no);
  EXPECT_TRUE(probes_of(cohort).contains("stream_rms/layers.0.attn"));
}

TEST(Cohort, ADivergedMemberIsFrozenAndTheOthersGoOn) {
  Cohort cohort = make_cohort(small_run("train.clip = 0\nmembers.lr = [1e-3, 1e6]"));
  std::vector<MemberEvent> events;
  for (int i = 0; i < 40; ++i) {
    for (const MemberEvent& event : cohort.train_step()) {
      if (event.what == "diverged") events.push_back(event);
    }
  }
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].member, 1);
  const MemberState& state = cohort.member(1);
  EXPECT_TRUE(state.diverged);
  EXPECT_EQ(state.diverged_at_step, events[0].step);
  EXPECT_FALSE(state.diverged_because.empty());
  EXPECT_EQ(cohort.active_members(), 1);
  EXPECT_FALSE(cohort.member(0).diverged);
  EXPECT_TRUE(std::isfinite(cohort.member(0).loss));
}

TEST(Cohort, NamesTheFirstBadWireAndKeepsTheWeights) {
  Cohort cohort = make_cohort(small_run());
  cohort.train_step();
  cohort.session().tensor<float>("layers.1.attn.out.bias")[3] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> before = weights(cohort);
  const std::vector<MemberEvent> events = cohort.train_step();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].what, "diverged");
  EXPECT_NE(cohort.member(0).first_bad_wire.find("layers.1.attn.out"), std::string::npos)
      << cohort.member(0).first_bad_wire;
  EXPECT_EQ(weights(cohort), before);
  EXPECT_TRUE(cohort.probes(0).empty());  // the search for the wire has overwritten them
}

// Leaves the loss as it is, and makes the square of a gradient too large to be held.
void stretch(Cohort& cohort, float factor) {
  for (float& weight : cohort.session().tensor<float>("head.weight")) weight *= factor;
  for (float& gain : cohort.session().tensor<float>("final.norm1.gain")) gain /= factor;
}
constexpr float kStretch = 0x1p83f;

TEST(Cohort, KeepsTheWeightsWhenOnlyTheGradientIsNotFinite) {
  for (const char* clip : {"train.clip = 0", "train.clip = 1", "train.clip = 0\ntrain.accumulate = 2"}) {
    Cohort cohort = make_cohort(small_run(clip));
    cohort.train_step();
    stretch(cohort, kStretch);
    const std::vector<float> before = weights(cohort);
    cohort.train_step();
    const MemberState& state = cohort.member(0);
    EXPECT_TRUE(std::isfinite(state.loss));
    EXPECT_EQ(state.diverged_because, "gradient not finite") << clip;
    EXPECT_EQ(state.diverged_at_step, 2);
    EXPECT_TRUE(state.first_bad_wire.starts_with("gradient of final.norm1.")) << state.first_bad_wire;
    EXPECT_EQ(weights(cohort), before) << clip;
  }
}

TEST(Cohort, NamesTheFirstBadWireOfTheBackwardPass) {
  Cohort cohort = make_cohort(
      small_run("model.time = 16\ntrain.optimiser = \"sgd\"\ntrain.lr = 1e5\ntrain.clip = 0\ntrain.steps = 100"));
  while (cohort.active_members() > 0 && cohort.step() < 100) cohort.train_step();
  const MemberState& state = cohort.member(0);
  EXPECT_EQ(state.diverged_because, "gradient not finite");
  EXPECT_TRUE(state.first_bad_wire.starts_with("layers.")) << state.first_bad_wire;
  for (const float weight : weights(cohort)) ASSERT_TRUE(std::isfinite(weight));
}

TEST(Cohort, NamesNoProbeAsTheFirstBadWire) {
  Cohort cohort = make_cohort(
      small_run("model.scheme = \"post\"\nmodel.time = 16\ntrain.optimiser = \"sgd\"\ntrain.lr = 1e4\ntrain.clip = 0"));
  while (cohort.active_members() > 0 && cohort.step() < 60) cohort.train_step();
  ASSERT_TRUE(cohort.member(0).diverged);
  EXPECT_TRUE(cohort.member(0).first_bad_wire.starts_with("layers.")) << cohort.member(0).first_bad_wire;
}

TEST(Recovery, PassesOverAStepWhoseGradientIsNotFinite) {
  for (const char* policy : {"skip", "lower_lr"}) {
    Cohort cohort = make_cohort(small_run(fmt::format("train.clip = 0\ndetect.recovery = \"{}\"", policy)));
    cohort.train_step();
    stretch(cohort, kStretch);
    const std::vector<float> before = weights(cohort);
    EXPECT_EQ(cohort.train_step().size(), 1u);
    EXPECT_EQ(cohort.member(0).skipped_steps, 1);
    EXPECT_EQ(weights(cohort), before) << policy;
    stretch(cohort, 1 / kStretch);
    EXPECT_TRUE(cohort.train_step().empty()) << policy;
    EXPECT_NE(weights(cohort), before) << policy;
    EXPECT_FALSE(cohort.member(0).diverged);
  }
}

TEST(Recovery, RollsBackToWeightsThatAreFinite) {
  Cohort cohort =
      make_cohort(small_run("model.vocabulary = 20\ndetect.recovery = \"roll_back\"\ndetect.snapshot_every = 1"));
  cohort.train_step();
  // A weight that an update made infinite and that no batch has read yet.
  float& unread = cohort.session().tensor<float>("embedding.token").back();
  unread = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(cohort.train_step().empty());
  cohort.session().tensor<float>("layers.1.attn.out.bias")[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(cohort.train_step().size(), 1u);
  EXPECT_TRUE(std::isfinite(unread));
}

TEST(Recovery, LowersTheRateOrRollsBackInsteadOfFreezing) {
  for (const char* policy : {"lower_lr", "roll_back"}) {
    Cohort cohort = make_cohort(small_run(
        fmt::format("train.steps = 200\ntrain.clip = 0\ntrain.lr = 3.0\ndetect.recovery = \"{}\"\ndetect.window = 5\n"
                    "detect.patience = 2\ndetect.lr_factor = 0.1\ndetect.snapshot_every = 1000",
                    policy)));
    std::vector<std::string> actions;
    for (int i = 0; i < 200; ++i) {
      for (const MemberEvent& event : cohort.train_step()) {
        if (event.what != "spike") actions.push_back(event.what);
      }
    }
    ASSERT_FALSE(actions.empty()) << policy;
    // Weights that a huge rate has wrecked are not mended by a smaller one; those of a snapshot are fine.
    if (policy == std::string("roll_back")) {
      EXPECT_FALSE(cohort.member(0).diverged);
    }
    EXPECT_LE(cohort.member(0).actions, 10) << policy;
    EXPECT_LT(cohort.member(0).lr_factor, 1) << policy;
    EXPECT_NE(actions[0].find(policy == std::string("lower_lr") ? "lowered" : "rolled back to step 0"),
              std::string::npos)
        << actions[0];
  }
}

class Resume : public testing::TestWithParam<const char*> {};

TEST_P(Resume, GivesTheSameBitsAsAnUninterruptedRun) {
  const RunConfig config = small_run(GetParam());
  const test::TemporaryFolder folder;
  const fs::path path = folder / "cohort.safetensors";
  Cohort whole = make_cohort(config);
  Cohort first = make_cohort(config);
  for (int i = 0; i < 13; ++i) {
    whole.train_step();
    first.train_step();
  }
  first.evaluate();
  write_safetensors(path, first.checkpoint_tensors(), first.checkpoint_metadata());
  Cohort second = make_cohort(config);
  second.restore(SafetensorsFile(path));
  EXPECT_EQ(second.step(), 13);
  EXPECT_EQ(second.member(0).evaluation_loss, first.member(0).evaluation_loss);
  for (int i = 0; i < 10; ++i) {
    whole.train_step();
    second.train_step();
    for (int member = 0; member < whole.members(); ++member)
      ASSERT_EQ(whole.member(member).loss, second.member(member).loss) << "step " << i << " member " << member;
  }
  for (int member = 0; member < whole.members(); ++member) EXPECT_EQ(weights(whole, member), weights(second, member));
}

INSTANTIATE_TEST_SUITE_P(
    Settings, Resume,
    testing::Values("", "train.optimiser = \"sgd\"", "train.optimiser = \"radam\"\ntrain.decay = \"l2\"",
                    "train.accumulate = 3\ntrain.clip = 0.1", "members.lr = [1e-3, 1e-2, 1e6]\ntrain.clip = 0",
                    "train.dropout = 0.3\ntrain.smoothing = 0.1", "model.scheme = \"post_pre_post\"",
                    "detect.recovery = \"roll_back\"\ntrain.lr = 3.0\ntrain.clip = 0\ndetect.window = 3\n"
                    "detect.patience = 1\ndetect.snapshot_every = 4"));

TEST(Resume, RefusesAnotherModelAndChangesNothing) {
  const test::TemporaryFolder folder;
  const fs::path path = folder / "other.safetensors";
  Cohort narrow = make_cohort(small_run());
  write_safetensors(path, narrow.checkpoint_tensors(), narrow.checkpoint_metadata());
  Cohort wide = make_cohort(small_run("model.width = 32"));
  const std::vector<float> before = weights(wide);
  EXPECT_NE(test::error_of([&] { wide.restore(SafetensorsFile(path)); }).find("but the model has"), std::string::npos);
  EXPECT_EQ(weights(wide), before);
  Cohort two = make_cohort(small_run("members.seed = [1, 2]"));
  EXPECT_NE(
      test::error_of([&] { two.restore(SafetensorsFile(path)); }).find("holds 1 members but the configuration has 2"),
      std::string::npos);
}

TEST(Cohort, RefusesAVocabularyThatIsTooSmall) {
  EXPECT_NE(test::error_of([] { make_cohort(small_run("model.vocabulary = 3")); }).find("3"), std::string::npos);
}

}  // namespace
}  // namespace norma
