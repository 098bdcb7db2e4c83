// The host looks at a step a fixed number of steps later: what it decides comes later, and at the same step in every
// run.
#include <gtest/gtest.h>

#include <filesystem>

#include "norma/store/safetensors_writer.h"
#include "temporary_folder.h"
#include "train/cohort_check.h"

namespace norma {
namespace {

using test::make_cohort;
using test::poison;
using test::small_run;
using test::weights;

constexpr CohortOptions kLag{.lag = 2};

std::vector<MemberEvent> train(Cohort& cohort, std::int64_t to) {
  std::vector<MemberEvent> all;
  while (cohort.step() < to) {
    for (const MemberEvent& event : cohort.train_step(Watching::no)) all.push_back(event);
  }
  return all;
}

TEST(Lag, ChangesNothingWhileNothingHappens) {
  const RunConfig config = small_run("train.steps = 20\nmembers.seed = [1, 2]");
  Cohort soon = make_cohort(config), late = make_cohort(config, kLag);
  train(soon, 10);
  train(late, 10);
  EXPECT_EQ(soon.observed_step(), 10);
  EXPECT_EQ(late.observed_step(), 8);
  EXPECT_NE(soon.member(0).loss, late.member(0).loss);
  train(soon, 20);
  train(late, 20);
  EXPECT_EQ(late.observed_step(), 20) << "after the last step nothing is left to look at";
  for (int member = 0; member < 2; ++member) {
    EXPECT_EQ(weights(soon, member), weights(late, member));
    EXPECT_EQ(soon.member(member).loss, late.member(member).loss);
    EXPECT_EQ(soon.member(member).best_loss, late.member(member).best_loss);
    EXPECT_EQ(soon.member(member).lr, late.member(member).lr);
  }
}

TEST(Lag, DivergenceIsThatOfTheStepWhereItHappened) {
  Cohort cohort = make_cohort(small_run("members.seed = [1, 2]"), kLag);
  train(cohort, 5);
  poison(cohort, 1);
  const std::vector<float> before = weights(cohort, 1);
  EXPECT_TRUE(train(cohort, 7).empty());
  EXPECT_FALSE(cohort.member(1).diverged);
  const std::vector<MemberEvent> events = train(cohort, 8);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].what, "diverged");
  EXPECT_EQ(events[0].member, 1);
  EXPECT_EQ(events[0].step, 6);
  EXPECT_EQ(cohort.member(1).diverged_at_step, 6);
  EXPECT_NE(cohort.member(1).first_bad_wire.find("layers.1.attn.out"), std::string::npos)
      << cohort.member(1).first_bad_wire;
  EXPECT_EQ(weights(cohort, 1), before);
  EXPECT_TRUE(train(cohort, 20).empty()) << "what was under way when it froze is not judged";
  EXPECT_FALSE(cohort.member(0).diverged);
}

TEST(Lag, ABadWireIsFoundWithTheBatchesOfItsStep) {
  Cohort soon = make_cohort(small_run("train.accumulate = 2"));
  Cohort late = make_cohort(small_run("train.accumulate = 2"), kLag);
  for (Cohort* cohort : {&soon, &late}) {
    train(*cohort, 4);
    poison(*cohort);
  }
  const std::vector<MemberEvent> at_once = train(soon, 5), later = train(late, 7);
  ASSERT_EQ(at_once.size(), 1u);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(at_once[0].why, later[0].why);
}

TEST(Lag, RollingBackVoidsWhatWasUnderWay) {
  Cohort cohort = make_cohort(small_run("detect.recovery = \"roll_back\"\ndetect.snapshot_every = 2"), kLag);
  train(cohort, 5);  // steps 2 and no later are judged and kept
  poison(cohort);
  const std::vector<MemberEvent> events = train(cohort, 8);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].step, 6);
  EXPECT_NE(events[0].what.find("rolled back to step 4"), std::string::npos) << events[0].what;
  EXPECT_TRUE(std::isfinite(cohort.session().read<float>("layers.1.attn.out.bias")[3]));
  EXPECT_TRUE(train(cohort, 20).empty()) << "steps 7 and 8 were lost with the weights they belonged to";
  EXPECT_EQ(cohort.member(0).actions, 1);
  EXPECT_TRUE(std::isfinite(cohort.member(0).loss));
}

TEST(Lag, SkippedStepsAreCountedEach) {
  Cohort cohort = make_cohort(small_run("detect.recovery = \"skip\"\ndetect.most_actions = 2"), kLag);
  train(cohort, 3);
  poison(cohort);
  const std::vector<MemberEvent> events = train(cohort, 9);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].what, "skipped step");
  EXPECT_EQ(events[0].step, 4);
  EXPECT_EQ(events[1].step, 5);
  EXPECT_EQ(events[2].what, "diverged");
  EXPECT_EQ(events[2].step, 6);
  EXPECT_EQ(cohort.member(0).skipped_steps, 2);
}

// Too high a rate, so that recovery acts before and after the checkpoint.
class LagResume : public testing::TestWithParam<int> {};

TEST_P(LagResume, GivesTheSameBitsAndEventsAsAnUninterruptedRun) {
  const RunConfig config = small_run(
      "train.steps = 60\ntrain.clip = 0\ntrain.lr = 3.0\ndetect.recovery = \"roll_back\"\ndetect.window = 5\n"
      "detect.patience = 2\ndetect.lr_factor = 0.3\ndetect.snapshot_every = 3");
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "cohort.safetensors";
  Cohort whole = make_cohort(config, kLag), first = make_cohort(config, kLag);
  train(whole, GetParam());
  train(first, GetParam());
  write_safetensors(path, first.checkpoint_tensors(), first.checkpoint_metadata());
  Cohort second = make_cohort(config, kLag);
  second.restore(SafetensorsFile(path));
  EXPECT_EQ(second.observed_step(), whole.observed_step());
  const std::vector<MemberEvent> expected = train(whole, 60), found = train(second, 60);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].step, expected[i].step);
    EXPECT_EQ(found[i].what, expected[i].what);
  }
  EXPECT_EQ(weights(second), weights(whole));
  EXPECT_EQ(second.member(0).loss, whole.member(0).loss);
  EXPECT_EQ(second.member(0).actions, whole.member(0).actions);
  EXPECT_GT(whole.member(0).actions, 0);
}

INSTANTIATE_TEST_SUITE_P(Steps, LagResume, testing::Values(1, 3, 4, 5, 6, 7, 9, 20));

}  // namespace
}  // namespace norma
