// Members that train side by side: learning, independence, and exact resumption in memory.
#include "norma/train/cohort.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "check.h"
#include "error_of.h"
#include "temporary_folder.h"
#include "train/cohort_check.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using test::edit;
using test::make_cohort;
using test::small_run;
using test::weights;

TEST(Cohort, AStreamOfBf16NeedsMixedPrecision) {
  EXPECT_EQ(test::error_of([] { make_cohort(small_run("model.stream = \"bf16\"")); }),
            "model.stream is bf16, but train.precision is f32; a stream of bf16 needs train.precision=bf16");
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
  edit(cohort, "head.weight", [](std::vector<float>& weights) {
    for (float& weight : weights) weight *= 1000;
  });
  cohort.train_step(Watching::no);
  EXPECT_EQ(cohort.member(0).spikes, 1);
  EXPECT_FALSE(probes_of(cohort).contains("stream_rms/layers.0.attn"));
  cohort.train_step(Watching::no);
  EXPECT_TRUE(probes_of(cohort).contains("stream_rms/layers.0.attn"));
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
