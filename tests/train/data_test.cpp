// Which task suits which model, said in one place.
#include "norma/train/data.h"

#include <gtest/gtest.h>

#include <cmath>

#include "error_of.h"
#include "norma/train/cohort.h"
#include "norma/train/result.h"

namespace norma {
namespace {

RunConfig with(Family family, const std::string& task) {
  RunConfig config;
  config.model.family = family;
  config.data.task = task;
  config.model.batch = family->batch > 0 ? family->batch : 2;
  config.model.time = 12;
  return config;
}

TEST(Data, EveryFamilyHasAUsualTaskWithoutAFile) {
  for (const auto& [family, task] :
       {std::pair{"decoder", "grammar"}, {"encoder", "masked_grammar"}, {"encoder_decoder", "sort"}}) {
    EXPECT_EQ(RunConfig().data.task, kFamilyTask);
    const RunConfig config = with(family, kFamilyTask);
    EXPECT_EQ(settle_task(config).data.task, task);
    EXPECT_EQ(resolve_config(config, *open_data(config)).data.task, task);
  }
  EXPECT_EQ(settle_task(with("encoder", "classification")).data.task, "classification") << "a name stays";
}

TEST(Data, AFileThatIsNamedIsRead) {
  for (const auto& [family, task] :
       {std::pair{"decoder", "text"}, {"encoder", "masked"}, {"encoder_decoder", "translation"}}) {
    RunConfig config = with(family, kFamilyTask);
    config.data.path = "nowhere.txt";
    EXPECT_EQ(settle_task(config).data.task, task);
    EXPECT_NE(test::error_of([&] { open_data(config); }).find("nowhere.txt"), std::string::npos);
  }
}

TEST(Data, ADecoderThatIsToldClassesIsNamedAClassifier) {
  RunConfig config = with("decoder", "grammar");
  config.model.classes = 3;
  const std::shared_ptr<const Source> source = open_data(config);
  EXPECT_NE(
      test::error_of([&] { check_reads(resolve_config(config, *source).model, *source); }).find("model.classes is 3"),
      std::string::npos);
}

TEST(Data, EveryPairOfFamilyAndTaskIsOpenedOrRefusedByName) {
  const std::vector<std::string> all(task_names().begin(), task_names().end());
  int refused = 0;
  for (const FamilyRow& row : families()) {
    const Family family(row.name);
    const std::string name = "\"" + row.name + "\"";
    const std::vector<std::string> suiting = tasks_for(row.data);
    for (const std::string& task : all) {
      const RunConfig config = with(family, task);
      const std::string error = test::error_of([&] { check_task(config); });
      if (std::find(suiting.begin(), suiting.end(), task) != suiting.end()) {
        EXPECT_EQ(error, "");
        continue;
      }
      ++refused;
      EXPECT_NE(error.find("\"" + task + "\""), std::string::npos) << error;
      EXPECT_NE(error.find(name), std::string::npos) << error;
      EXPECT_NE(error.find(suiting.front()), std::string::npos) << error;
      EXPECT_EQ(test::error_of([&] { open_data(config); }), error) << "before any file is looked for";
    }
  }
  EXPECT_GE(refused, 25);
  EXPECT_EQ(test::error_of([&] { check_task(with("encoder", "grammar")); }),
            "data.task = \"grammar\" suits model.family = \"decoder\"; \"encoder\" was given, which reads a row all at "
            "once and would see each next token; expected for it one of masked_grammar, masked_sentences, masked, "
            "classification");
}

TEST(Data, OnlyAnEncoderDecoderHasASource) {
  ModelConfig model{.family = "decoder"};
  model.batch = 3;
  model.time = 8;
  model.source_time = 5;
  EXPECT_EQ(batch_shape(model).source_time, 0);
  model.family = "encoder_decoder";
  EXPECT_EQ(batch_shape(model).source_time, 5);
  model.source_time = 0;
  EXPECT_EQ(batch_shape(model).source_time, 8);
}

// Two classes: seven in ten are of the first, but nine in ten of the few that are held out.
class SkewedClasses final : public Source {
 public:
  void fill(std::uint64_t, std::uint64_t, Batch& batch) const override { write(batch, 7); }
  std::int64_t evaluation_batches() const override { return 2; }
  void fill_evaluation(std::int64_t, Batch& batch) const override { write(batch, 9); }
  std::int64_t vocabulary() const override { return 2; }
  std::int64_t classes() const override { return 2; }
  std::optional<double> optimum() const override { return std::nullopt; }
  std::string describe() const override { return "skewed"; }

 private:
  static void write(Batch& batch, int of_the_first) {
    Batch::Ids& ids = batch.ids("targets", {10});
    for (int i = 0; i < 10; ++i) ids[static_cast<std::size_t>(i)] = i < of_the_first ? 0 : 1;
  }
};

// Asks for nothing from batch `last` on.
class EndsEarly final : public Source {
 public:
  explicit EndsEarly(std::uint64_t last) : last_(last) {}
  void fill(std::uint64_t index, std::uint64_t, Batch& batch) const override {
    for (const char* name : {"tokens", "targets"}) {
      Batch::Ids& ids = batch.ids(name, {2, 12});
      for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i % 5);
    }
    if (index >= last_) std::ranges::fill(batch.ids("targets"), kIgnored);
  }
  std::int64_t evaluation_batches() const override { return 0; }
  void fill_evaluation(std::int64_t, Batch&) const override {}
  std::int64_t vocabulary() const override { return 5; }
  std::optional<double> optimum() const override { return std::nullopt; }
  std::string describe() const override { return "ends early"; }

 private:
  std::uint64_t last_;
};

// The loss of no targets is 0 / 0, which passed for divergence of the scheme.
TEST(Data, ABatchThatAsksForNothingIsAnErrorOfTheData) {
  RunConfig config = with("decoder", "grammar");
  config.model.layers = 1;
  config.model.width = 8;
  config.model.heads = 2;
  const auto error = [&](std::uint64_t last) {
    return test::error_of([&] {
      Cohort cohort(config, std::make_shared<EndsEarly>(last));
      for (int step = 0; step < 3; ++step) cohort.train_step();
      EXPECT_FALSE(cohort.member(0).diverged);
    });
  };
  EXPECT_EQ(error(3), "");
  EXPECT_EQ(error(2),
            "batch 2 of the data holds nothing to learn: all 24 of its targets are -100, which is not counted");
  EXPECT_NE(error(0).find("batch 0 of the data holds nothing to learn"), std::string::npos) << error(0);
  EXPECT_NE(error(0).find("ends early"), std::string::npos) << error(0);
}

TEST(Data, NothingToLearnIsSaidOfDataThatAreAllAlikeOnly) {
  RunConfig config = with("decoder", "grammar");
  config.model.vocabulary = 5;
  EXPECT_EQ(nothing_to_learn(EndsEarly(3), config.model, 1), std::nullopt);
  EXPECT_EQ(nothing_to_learn(EndsEarly(0), config.model, 1), "no target of its data is counted");
  for (const FamilyRow& row : families()) {
    RunConfig usual = with(Family(row.name), kFamilyTask);
    const std::shared_ptr<const Source> source = open_data(usual);
    EXPECT_EQ(nothing_to_learn(*source, resolve_config(usual, *source).model, 1), std::nullopt) << row.name;
  }
}

TEST(Guessing, IsJudgedOnTheRecordsThatTheLossIsOf) {
  const SkewedClasses source;
  const double entropy = -0.7 * std::log(0.7) - 0.3 * std::log(0.3);
  EXPECT_NEAR(unigram_entropy(source, 1), entropy, 1e-9);
  const double held_out = -0.9 * std::log(0.7) - 0.1 * std::log(0.3);
  EXPECT_NEAR(guessing_level(source, 1), held_out, 0.01);
  EXPECT_EQ(most_frequent_share(source, 1), 0.9);
  // A model that knows frequencies and nothing else.
  MemberState state;
  state.evaluation_loss = held_out;
  EXPECT_EQ(outcome_of(state, guessing_level(source, 1)), Outcome::did_not_learn);
}

}  // namespace
}  // namespace norma
