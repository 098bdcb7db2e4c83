// What a final comparison is judged by: losses by batch, answers by record, of trained models on disk.
#include "lab/study/final_losses.h"

#include <gtest/gtest.h>

#include <numeric>

#include "norma/store/safetensors_writer.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"
#include "temporary_folder.h"

namespace norma {
namespace {

struct Judged {
  FinalScores scores;
  double loss = 0, accuracy = 0, records = 0;  // of the cohort's own evaluation
};

// Trained for a few steps, stored, and judged from there.
Judged judge_stored(RunConfig config) {
  config.train.threads = 1;
  config.train.lr = 1e-2;
  const std::shared_ptr<const Source> source = open_data(config);
  Cohort cohort(config, source);
  for (int step = 0; step < 20; ++step) cohort.train_step();
  cohort.evaluate();
  const test::TemporaryFolder folder;
  const std::string path = folder / "checkpoint.safetensors";
  write_safetensors(path, cohort.checkpoint_tensors(), cohort.checkpoint_metadata());
  const MemberState& state = cohort.member(0);
  return {final_scores({{path, 20, 20}}, source, 1, [] { return false; }), *state.evaluation_loss,
          *state.evaluation_accuracy, *state.evaluation_records};
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

RunConfig of_family(const char* family, std::int64_t batch) {
  RunConfig config;
  config.model.family = family;
  config.model.layers = 2;
  config.model.width = 16;
  config.model.batch = batch;
  config.train.steps = 20;
  config.data.evaluation_batches = 3;
  return config;
}

TEST(FinalScores, AnswersAreByRecordAndLossesByBatch) {
  const Judged judged = judge_stored(of_family("mlp", 31));
  ASSERT_EQ(judged.scores.losses[0].size(), 3u);
  ASSERT_EQ(judged.scores.right[0].size(), 93u);
  for (const double right : judged.scores.right[0]) EXPECT_TRUE(right == 0 || right == 1) << right;
  EXPECT_NEAR(mean_of(judged.scores.right[0]), judged.accuracy, 1e-9);
  EXPECT_NEAR(mean_of(judged.scores.losses[0]), judged.loss, 1e-5);
  EXPECT_EQ(judged.records, 93);
}

TEST(FinalScores, ASingleBatchIsTakenRecordByRecord) {
  RunConfig config = of_family("mlp", 31);
  config.data.evaluation_batches = 1;
  const Judged judged = judge_stored(config);
  ASSERT_EQ(judged.scores.losses[0].size(), 31u) << "one batch says nothing of other data, its records do";
  EXPECT_NEAR(mean_of(judged.scores.losses[0]), judged.loss, 1e-5);
  EXPECT_NEAR(mean_of(judged.scores.right[0]), judged.accuracy, 1e-9);
}

TEST(FinalScores, OfASingleGraphTheNodesAreTheRecords) {
  RunConfig config = of_family("gcn", 1);
  config.data.held_out = "odd";  // as a study judges: one batch of nodes
  config.data.settings = {{"nodes", 300}};
  const Judged judged = judge_stored(config);
  EXPECT_GT(judged.scores.right[0].size(), 31u);
  EXPECT_EQ(judged.scores.losses[0].size(), judged.scores.right[0].size());
  EXPECT_EQ(judged.records, static_cast<double>(judged.scores.right[0].size()));
  EXPECT_NEAR(mean_of(judged.scores.losses[0]), judged.loss, 1e-5);
  EXPECT_NEAR(mean_of(judged.scores.right[0]), judged.accuracy, 1e-9);
}

TEST(FinalScores, DenoisersHaveNoAnswers) {
  RunConfig config = of_family("dit", 8);
  const std::shared_ptr<const Source> source = open_data(config);
  Cohort cohort(config, source);
  cohort.train_step();
  const test::TemporaryFolder folder;
  const std::string path = folder / "checkpoint.safetensors";
  write_safetensors(path, cohort.checkpoint_tensors(), cohort.checkpoint_metadata());
  const FinalScores scores = final_scores({{path, 1, 1}}, source, 1, [] { return false; });
  EXPECT_EQ(scores.losses[0].size(), 3u);
  EXPECT_TRUE(scores.right[0].empty());
}

}  // namespace
}  // namespace norma
