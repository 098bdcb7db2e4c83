// Members that go astray: what is named, what stays as it was, and what recovery makes of it.
#include <gtest/gtest.h>

#include <cmath>

#include "train/cohort_check.h"

namespace norma {
namespace {

using test::edit;
using test::make_cohort;
using test::poison;
using test::small_run;
using test::weights;

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
  poison(cohort);
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
  const auto times = [](float by) {
    return [by](std::vector<float>& values) {
      for (float& value : values) value *= by;
    };
  };
  edit(cohort, "head.weight", times(factor));
  edit(cohort, "final.norm1.gain", times(1 / factor));
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
  edit(cohort, "embedding.token",
       [](std::vector<float>& unread) { unread.back() = std::numeric_limits<float>::infinity(); });
  EXPECT_TRUE(cohort.train_step().empty());
  poison(cohort);
  EXPECT_EQ(cohort.train_step().size(), 1u);
  EXPECT_TRUE(std::isfinite(cohort.session().read<float>("embedding.token").back()));
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

}  // namespace
}  // namespace norma
