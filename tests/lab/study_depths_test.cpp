// One question at several depths: folders, shares of a budget, going on, and what is said of the differences.
#include "norma/lab/study_depths.h"

#include <gtest/gtest.h>

#include "norma/core/error.h"
#include "temporary_folder.h"

namespace norma {
namespace {

using test::TemporaryFolder;

StudyConfig question() {
  StudyConfig config;
  config.schemes = {"pre", "post"};
  config.rates = {1e-3, 1e-2};
  config.warmups = {0};
  config.seeds = {1, 2};
  config.extra_rates = 0;
  config.inspect = config.depth_use = false;
  config.budget = {};
  for (const char* setting : {"model.width=16", "model.heads=2", "model.batch=4", "model.time=16", "train.steps=4",
                              "train.threads=1", "train.device=cpu"})
    override_config(config.base, setting);
  return config;
}

DepthsResult ask(const StudyConfig& config, const std::string& directory, const std::vector<std::int64_t>& depths) {
  StudyObserver observer;
  const std::atomic<bool> stop{false};
  return run_study_of_depths({.config = config, .directory = directory}, depths, observer, stop);
}

std::vector<Results> results_of(const DepthsResult& result) {
  std::vector<Results> all;
  for (const DepthStudy& study : result.studies) all.push_back(read_results(study.results_json, "a study"));
  return all;
}

TEST(StudyDepths, EachDepthIsAStudyOfItsOwnShallowFirst) {
  const TemporaryFolder folder;
  const DepthsResult result = ask(question(), folder / "depths", {3, 1});
  ASSERT_EQ(result.studies.size(), 2u);
  EXPECT_EQ(result.studies[0].layers, 1);
  EXPECT_EQ(result.studies[1].directory, std::filesystem::path(folder / "depths") / "layers-3");
  const std::vector<Results> all = results_of(result);
  for (const RunOutcome& run : all[0].runs) EXPECT_EQ(run.layers, 1);
  for (const RunOutcome& run : all[1].runs) EXPECT_EQ(run.layers, 3);
  EXPECT_EQ(depths_answer(all, {1, 3}), "Undecided at 1 and 3 layers.") << "four steps decide nothing";
  ASSERT_EQ(depths_rows(all).size(), 2u);
  EXPECT_EQ(depths_rows(all)[0].cells.size(), 2u);
  EXPECT_TRUE(ask(question(), folder / "depths", {1, 3}).finished_before) << "the same question in the same folder";
}

TEST(StudyDepths, ABudgetIsDividedByLayersWhereItIsATimeAndEquallyWhereItIsWork) {
  const TemporaryFolder folder;
  StudyConfig config = question();
  config.budget = {StudyBudget::Unit::steps, 400};
  for (const Results& one : results_of(ask(config, folder / "work", {1, 3}))) EXPECT_EQ(one.course->budget, "200steps");
  config.budget = {StudyBudget::Unit::seconds, 4};
  const std::vector<Results> timed = results_of(ask(config, folder / "time", {1, 3}));
  EXPECT_EQ(timed[0].course->budget, "1s");
  EXPECT_EQ(timed[1].course->budget, "3s");
}

// The depths share what was asked for, so a budget that tells at one of them is not one for all.
TEST(StudyDepths, ABudgetThatWouldTellIsThatOfOneDepth) {
  const TemporaryFolder folder;
  StudyConfig config = question();
  config.schemes = {"pre", "f(x)*0"};
  config.budget = {StudyBudget::Unit::steps, 600};
  for (const Results& one : results_of(ask(config, folder / "study", {1, 3}))) {
    const auto dead = std::ranges::find(one.verdicts, "f(x)*0", &Verdict::scheme);
    ASSERT_NE(dead, one.verdicts.end());
    const std::string layers = dead->words.find("at 1 layer ") != std::string::npos ? "1" : "3";
    EXPECT_NE(dead->words.find("; --layers " + layers + " --budget "), std::string::npos) << dead->words;
  }
}

TEST(StudyDepths, RefusesWhatItCannotDo) {
  const TemporaryFolder folder;
  EXPECT_THROW(ask(question(), folder / "twice", {2, 2}), Error);
  EXPECT_THROW(ask(question(), folder / "many", {1, 2, 3, 4, 5, 6, 7, 8, 9}), Error);
  StudyObserver observer;
  const std::atomic<bool> stop{false};
  StudyConfig one = question();
  one.base.model.layers = 1;
  run_study({.config = one, .directory = folder / "single"}, observer, stop);
  EXPECT_THROW(ask(question(), folder / "single", {1, 2}), Error) << "it holds a study of one depth";
}

// Verdicts as they would be found; only what is said of them is asked.
TEST(StudyDepths, SaysWhichSchemesCeaseToTrain) {
  const auto study = [](Judgement post) {
    Results results = new_results(ResultsKind::study);
    results.verdicts = {{.scheme = "pre", .rank = 1, .verdict = Judgement::stable},
                        {.scheme = "post", .rank = 2, .verdict = post}};
    return results;
  };
  const std::string words = depths_words({study(Judgement::needs_warmup), study(Judgement::does_not_train)}, {12, 48});
  EXPECT_NE(words.find("Seen to train at 12 layers and not at 48: post (does not train)."), std::string::npos) << words;
  Results sure = study(Judgement::stable);
  sure.advice.words = "At 12 layers use pre. Measured at 12 layers, 5 seeds. By theory alone nothing.";
  sure.advice.confidence = "Confidence is fair for this setting.";
  Results unsure = study(Judgement::stable);
  unsure.advice.words = "At 48 layers use pre. Measured at 48 layers, 2 seeds.";
  unsure.advice.confidence = "Confidence is low between the tied schemes: ...";
  EXPECT_EQ(depths_words({sure, unsure}, {12, 48}),
            "Confidence fair, measured at 12 layers, 5 seeds. Confidence low, measured at 48 layers, 2 seeds. Runs of "
            "different depths may differ in length: compare schemes within a depth.");
  EXPECT_EQ(depths_words({study(Judgement::stable), study(Judgement::stable)}, {12, 48}).find("Seen to train"),
            std::string::npos);
}

TEST(StudyDepths, AnswersForEachDepth) {
  const auto study = [](const std::string& choice) {
    Results results = new_results(ResultsKind::study);
    results.advice.choice = choice;
    results.schemes.emplace_back();
    results.schemes[0].name = "pre";
    results.schemes[0].title = "Pre-LN";
    return results;
  };
  EXPECT_EQ(depths_answer({study("pre"), study("pre")}, {12, 48}), "At 12 and 48 layers use Pre-LN.");
  EXPECT_EQ(depths_answer({study("pre"), study("mine")}, {12, 48}), "At 12 layers use Pre-LN; at 48 layers use mine.");
  EXPECT_EQ(depths_answer({study(""), study("pre"), study("")}, {6, 12, 48}),
            "Undecided at 6 and 48 layers; at 12 layers use Pre-LN.");
}

TEST(StudyDepths, AnAnswerThatLongerRunsMayTurnAroundNamesItsLength) {
  const auto study = [](std::int64_t steps, bool lasting, double more_than_post) {
    Results results = new_results(ResultsKind::study);
    results.advice.choice = "pre";
    Tuned& tuned = results.tuned.emplace_back();
    tuned.scheme = "pre", tuned.lr = 1e-3, tuned.loss = {1.9, 1.8, 2.0, 5}, tuned.steps = steps;
    results.comparisons = {{.a = "pre",
                            .b = "post",
                            .difference = {more_than_post, more_than_post, more_than_post, 5},
                            .apart = true,
                            .lasting = lasting}};
    return results;
  };
  EXPECT_EQ(
      depths_answer({study(800, false, -0.1), study(3200, false, -0.1)}, {12, 48}),
      "At 12 and 48 layers use pre. Longer runs than 800 steps at 12 layers and 3200 at 48 may turn this around.");
  EXPECT_EQ(depths_answer({study(800, true, -0.1), study(3200, false, -0.1)}, {12, 48}),
            "At 12 and 48 layers use pre. Longer runs than 3200 steps at 48 layers may turn this around.");
  EXPECT_EQ(depths_answer({study(800, true, -0.1), study(3200, false, 0.1)}, {12, 48}), "At 12 and 48 layers use pre.")
      << "what it is behind of is not its lead";
}

}  // namespace
}  // namespace norma
