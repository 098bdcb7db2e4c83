// Running statistics of BatchNorm: followed in training, used in evaluation, kept in checkpoints, never shared.
#include <cmath>
#include <limits>

#include "models/model_check.h"
#include "norma/store/safetensors.h"
#include "norma/store/safetensors_writer.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"
#include "temporary_folder.h"

namespace norma {
namespace {

RunConfig normed_run(const std::string& family, const std::string& scheme) {
  RunConfig config;
  config.model.family = Family(family);
  config.model.layers = 2;
  config.model.width = 16;
  config.model.heads = 2;
  config.model.batch = 6;
  config.model.time = 7;
  config.model.scheme = scheme;
  config.model.norm = NormKind::batch;
  config.train.lr = 1e-2;
  config.train.steps = 40;
  config.train.threads = 1;
  return config;
}

std::vector<float> statistics_of(Cohort& cohort, int member) {
  std::vector<float> all;
  for (const ParameterSpec& spec : cohort.training_step().kept) {
    const std::vector<float> values = cohort.session().read<float>(spec.name, member);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

class RunningStatistics : public testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  static RunConfig run() { return normed_run(GetParam().first, GetParam().second); }
};

TEST_P(RunningStatistics, FollowTheBatchesOfTraining) {
  const RunConfig config = run();
  Cohort cohort(config, open_data(config));
  ASSERT_FALSE(cohort.training_step().kept.empty());
  for (const ParameterSpec& spec : cohort.training_step().kept) {
    const double start = spec.name.ends_with("running_variance") ? 1 : 0;
    for (const float value : cohort.session().read<float>(spec.name, 0)) EXPECT_EQ(value, start) << spec.name;
  }
  const std::vector<float> before = statistics_of(cohort, 0);
  cohort.train_step();
  const std::vector<float> after = statistics_of(cohort, 0);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < after.size(); ++i) moved += after[i] != before[i];
  EXPECT_GT(moved, after.size() * 9 / 10);
}

// In evaluation a row's logits do not depend on the rows beside it; with the statistics of the batch they do.
TEST_P(RunningStatistics, EvaluationDoesNotMixSamples) {
  for (const NormStatistics statistics : {NormStatistics::running, NormStatistics::batch}) {
    RunConfig config = run();
    config.model.norm_statistics = statistics;
    Cohort cohort(config, open_data(config));
    for (int i = 0; i < 5; ++i) cohort.train_step();
    const EvaluationStep step = build_evaluation_step(cohort.config().model, true);
    CpuSession session(step.plan, {.threads = 1});
    for (const Role role : {Role::parameter, Role::state}) {
      for (const std::string& name : step.plan->slot_names(role))
        session.write<float>(name, cohort.session().read<float>(name, 0), 0);
    }
    test::fill_inputs(session, cohort.config().model);
    session.run();
    const auto logits = [&] {
      const std::span<float> all = session.tensor<float>("logits");
      return std::vector<float>(all.begin(), all.end());
    };
    const std::vector<float> first = logits();
    for (const InputSpec& input : cohort.config().model.family->inputs(cohort.config().model)) {
      if (input.content == InputSpec::Content::numbers) session.tensor<float>(input.name)[0] += 5;
      if (input.content == InputSpec::Content::ids) session.tensor<std::int32_t>(input.name)[0] ^= 1;
    }
    session.run();
    const std::vector<float> second = logits();
    const std::size_t row = first.size() / 6;
    EXPECT_FALSE(std::equal(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(row), second.begin()));
    const bool others_kept = std::equal(first.begin() + static_cast<std::ptrdiff_t>(row), first.end(),
                                        second.begin() + static_cast<std::ptrdiff_t>(row));
    EXPECT_EQ(others_kept, statistics == NormStatistics::running);
  }
}

TEST_P(RunningStatistics, AreEachMembersOwn) {
  RunConfig config = run();
  config.train.seed = 1;
  Cohort first(config, open_data(config));
  config.train.seed = 2;
  Cohort second(config, open_data(config));
  config.members.seed = {1, 2};
  Cohort both(config, open_data(config));
  for (int i = 0; i < 4; ++i) {
    first.train_step();
    second.train_step();
    both.train_step();
  }
  EXPECT_EQ(statistics_of(both, 0), statistics_of(first, 0));
  EXPECT_EQ(statistics_of(both, 1), statistics_of(second, 0));
  EXPECT_NE(statistics_of(both, 0), statistics_of(both, 1));
}

TEST_P(RunningStatistics, SurviveACheckpoint) {
  const test::TemporaryFolder folder;
  const RunConfig config = run();
  Cohort whole(config, open_data(config)), again(config, open_data(config));
  for (int i = 0; i < 3; ++i) whole.train_step();
  write_safetensors(folder / "c.safetensors", whole.checkpoint_tensors(), whole.checkpoint_metadata());
  again.restore(SafetensorsFile(folder / "c.safetensors"));
  EXPECT_EQ(statistics_of(again, 0), statistics_of(whole, 0));
  whole.train_step();
  again.train_step();
  whole.evaluate();
  again.evaluate();
  EXPECT_EQ(again.member(0).evaluation_loss, whole.member(0).evaluation_loss);
}

TEST_P(RunningStatistics, StayAsTheyAreWhereFrozen) {
  RunConfig config = run();
  config.model.norm_statistics = NormStatistics::frozen;
  Cohort cohort(config, open_data(config));
  const std::vector<float> before = statistics_of(cohort, 0);
  ASSERT_FALSE(before.empty());
  for (int i = 0; i < 3; ++i) cohort.train_step();
  EXPECT_EQ(statistics_of(cohort, 0), before);
  config.model.norm_statistics = NormStatistics::batch;
  EXPECT_TRUE(Cohort(config, open_data(config)).training_step().kept.empty());
}

TEST_P(RunningStatistics, ABatchOfOneIsRefused) {
  RunConfig config = run();
  config.model.batch = 1;
  const std::string said = test::error_of([&] { Cohort(config, open_data(config)); });
  EXPECT_NE(said.find("BatchNorm over a batch of 1"), std::string::npos) << said;
  EXPECT_NE(said.find("expected a batch of at least 2"), std::string::npos) << said;
  config.model.norm_statistics = NormStatistics::frozen;
  EXPECT_EQ(test::error_of([&] { Cohort(config, open_data(config)); }), "");
}

INSTANTIATE_TEST_SUITE_P(Table, RunningStatistics,
                         testing::Values(std::pair{"resnet", "resnet_v1"}, std::pair{"resnet", "resnet_v2"},
                                         std::pair{"decoder", "pre"}, std::pair{"encoder", "post"},
                                         std::pair{"mlp", "pre"}),
                         [](const auto& given) { return std::string(given.param.first) + "_" + given.param.second; });

// What training normalises with and evaluation come to the same where batches are alike.
TEST(BatchNormInModels, TrainsAndEvaluatesAlike) {
  RunConfig config = normed_run("resnet", "resnet_v2");
  config.model.batch = 64;
  config.data.settings = {{"size", 8}};
  config.train.steps = 150;
  Cohort cohort(config, open_data(config));
  double recent = 0;
  while (cohort.step() < config.train.steps) {
    cohort.train_step();
    if (cohort.step() > 130) recent += cohort.member(0).loss / 20;
  }
  cohort.evaluate();
  EXPECT_NEAR(*cohort.member(0).evaluation_loss, recent, 0.15);
}

// A batch with a number that is not finite moves no statistic, as it moves no weight.
TEST(BatchNormInModels, ABadBatchLeavesStatistics) {
  Graph graph;
  const Wire x = graph.input("x", {{4, 3}, DType::f32});
  const NormInfo& info = norm("batch");
  graph.output("y", apply_norm(info, x, declare_norm(graph, info, 3)));
  CpuSession session(test::plain_plan(graph));
  test::randomise_all(session);
  const std::span<float> mean = session.tensor<float>("running_mean"),
                         variance = session.tensor<float>("running_variance");
  const std::vector<float> before(mean.begin(), mean.end()), spread(variance.begin(), variance.end());
  session.tensor<float>("x")[1] = std::numeric_limits<float>::quiet_NaN();
  session.run();
  EXPECT_EQ(mean[1], before[1]);
  EXPECT_EQ(variance[1], spread[1]);
  EXPECT_NE(mean[0], before[0]);
}

}  // namespace
}  // namespace norma
