// Whole studies with a budget, of tiny models on schemes whose truth is known.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "lab/study/parts.h"
#include "lab/study/rounds.h"
#include "lab/study_check.h"
#include "norma/core/error.h"
#include "norma/lab/study.h"
#include "temporary_folder.h"

namespace norma {
namespace {

using json = nlohmann::json;
using test::play_study;
using test::TemporaryFolder;

StudyConfig tiny_study(const std::vector<SchemeChoice>& schemes, double budget_steps) {
  StudyConfig config;
  config.schemes = schemes;
  config.rates = {1e-2, 3e-2};
  config.warmups = {0};
  config.seeds = {1};
  config.extra_rates = 0;
  config.inspect = config.depth_use = false;
  config.budget = {StudyBudget::Unit::steps, budget_steps};
  for (const char* setting : {"model.layers=1", "model.width=8", "model.heads=1", "model.batch=4", "model.time=8",
                              "train.steps=40", "train.threads=1", "data.evaluation_batches=4"})
    override_config(config.base, setting);
  return config;
}

// What must depend neither on the number of threads nor on interruptions.
json lasting(json results) {
  for (json& run : results["runs"]) run.erase("tokens_per_second");
  return {results["runs"],     results["maps"],        results["tuned"], results["course"],
          results["verdicts"], results["comparisons"], results["advice"]};
}

json verdict_of(const json& results, const std::string& scheme) {
  for (const json& verdict : results["verdicts"]) {
    if (verdict["scheme"] == scheme) return verdict;
  }
  return {};
}

SchemeChoice scheme_of(const std::string& name, const std::string& toml) {
  SchemeLibrary library;
  library.put(name, toml, SchemeLibrary::Rank::first);
  return library.find(name);
}

TEST(StudyRounds, ABudgetOfStepsIsOneStudyOnAnyNumberOfThreads) {
  const TemporaryFolder folder;
  StudyConfig config = tiny_study({"pre", "post"}, 4000);
  const json one = play_study(config, folder / "one");
  config.base.train.threads = 3;
  const json three = play_study(config, folder / "three");
  EXPECT_EQ(lasting(one), lasting(three));
  std::vector<std::string> stages;
  for (const json& round : one["course"]["rounds"]) stages.push_back(round["stage"]);
  ASSERT_GE(stages.size(), 3u) << one["course"];
  EXPECT_EQ(stages[0], "map");
  EXPECT_EQ(stages[1], "race");
  EXPECT_EQ(std::count(stages.begin(), stages.end(), "final") > 0, true) << one["course"];
  EXPECT_EQ(one["comparisons"].size(), 1u);
  EXPECT_LE(one["course"]["tokens"], 4000 * 32);
  for (const json& run : one["runs"]) {
    const bool tuning = run["seed"] == 1;
    EXPECT_EQ(run["stage"] == "final", !tuning) << "the final has fresh seeds";
    EXPECT_EQ(run["axes"]["train.data_seed"], run["axes"]["train.seed"]) << "the order of the data follows the seed";
  }
  std::size_t seeds = 0;  // those of the last look are in it
  for (const json& round : one["course"]["rounds"]) {
    if (round["stage"] == "final") seeds += round["seeds"].size();
  }
  EXPECT_GE(seeds, 6u) << "what pays for two schemes beside one tuning seed";
  EXPECT_EQ(one["tuned"][0]["loss"]["n"], seeds);
}

TEST(StudyRounds, StoppedAnywhereItRepeatsItsRounds) {
  struct Counter final : StudyObserver {
    void progressed(std::string_view, double, std::string_view) override {
      if (++steps % 61 == 0) stop = true;
    }
    std::atomic<bool> stop{false};
    int steps = 0;
  } broken;
  const TemporaryFolder folder;
  const StudyConfig config = tiny_study({"pre", "post"}, 4000);
  const json whole = play_study(config, folder / "whole");
  StudyResult result;
  int starts = 0;
  do {
    broken.stop = false;
    result = run_study({.config = config, .directory = folder / "broken"}, broken, broken.stop);
    ASSERT_LT(++starts, 100);
  } while (result.interrupted);
  EXPECT_GT(starts, 3);
  EXPECT_EQ(lasting(json::parse(result.results_json)), lasting(whole));
}

// Whoever watches learns how much of a budget of work is used up, up to all of it.
TEST(StudyRounds, TheShareOfABudgetOfWorkIsTold) {
  struct Watcher final : StudyObserver {
    void spent(double share) override { shares.push_back(share); }
    std::vector<double> shares;
  } watcher;
  const TemporaryFolder folder;
  std::atomic<bool> stop = false;
  run_study({.config = tiny_study({"pre", "post"}, 4000), .directory = folder / "study"}, watcher, stop);
  ASSERT_GT(watcher.shares.size(), 100u);
  EXPECT_LT(watcher.shares.front(), 0.1);
  EXPECT_GT(watcher.shares.back(), 0.5) << "what is left over is too little for another round";
  EXPECT_LE(*std::ranges::max_element(watcher.shares), 1 + 1e-9);
  EXPECT_TRUE(std::ranges::is_sorted(watcher.shares));
}

TEST(StudyRounds, WrittenDownRoundsAreRepeatedAndDamageIsNamed) {
  const TemporaryFolder folder;
  const StudyConfig config = tiny_study({"pre"}, 2000);
  play_study(config, folder / "study");
  const std::string rounds = test::read_file(folder / "study/rounds.json");
  EXPECT_NE(rounds.find("\"stage\": \"final\""), std::string::npos);
  std::filesystem::remove(folder / "study/DONE");
  play_study(config, folder / "study");
  EXPECT_EQ(test::read_file(folder / "study/rounds.json"), rounds) << "nothing was decided anew";
  std::filesystem::remove(folder / "study/DONE");
  test::write_file(folder / "study/rounds.json", rounds.substr(0, rounds.size() / 2));
  try {
    play_study(config, folder / "study");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rounds.json' is damaged"), std::string::npos) << error.what();
  }
}

// The same function, rounded differently: training makes of that what another seed would.
TEST(StudyRounds, TwinsAreNotToldApart) {
  int apart = 0;
  for (std::int64_t seed = 1; seed <= 6; ++seed) {
    const TemporaryFolder folder;
    StudyConfig config = tiny_study({"x + f(norm(x))", "0.3*x + f(norm(x)) + 0.7*x"}, 3000);
    config.seeds = {100 * seed};
    const json results = play_study(config, folder / "study");
    ASSERT_EQ(results["comparisons"].size(), 1u) << results["course"];
    apart += results["comparisons"][0]["apart"].get<bool>() ? 1 : 0;
  }
  EXPECT_LE(apart, 2) << "of 6, at 5 %";
}

// Its stream reaches the head only after 300 steps.
TEST(StudyRounds, ASchemeThatStartsLateIsNeverSaidNotToTrain) {
  const SchemeChoice late = scheme_of("late",
                                      "title = \"Late\"\nsublayer = \"x + f(norm(x))\"\nfinal = \"s*norm(x)\"\n"
                                      "[constants]\ns = \"clamp((t - 300)/10, 0, 1)\"\n");
  const TemporaryFolder folder;
  const json poor = play_study(tiny_study({"pre", late}, 1500), folder / "poor");
  EXPECT_EQ(verdict_of(poor, "late")["verdict"], "not enough training to tell") << verdict_of(poor, "late");
  EXPECT_NE(verdict_of(poor, "late")["words"].get<std::string>().find("--budget"), std::string::npos)
      << verdict_of(poor, "late");
  const json rich = play_study(tiny_study({"pre", late}, 20'000), folder / "rich");
  const std::string verdict = verdict_of(rich, "late")["verdict"];
  EXPECT_TRUE(verdict == "starts late" || verdict == "stable" || verdict == "narrow") << verdict_of(rich, "late");
}

TEST(StudyRounds, WhatNeverLearnsIsSaidNotToTrainAfterALongRunAndNothingIsRanked) {
  const SchemeChoice dead = scheme_of("dead", "sublayer = \"x + f(norm(x))\"\nfinal = \"0*norm(x)\"\n");
  const TemporaryFolder folder;
  const json results = play_study(tiny_study({dead}, 40000), folder / "study");
  EXPECT_EQ(verdict_of(results, "dead")["verdict"], "does not train") << results["course"];
  EXPECT_TRUE(results["advice"]["ranking"].empty());
  EXPECT_NE(results["advice"]["words"].get<std::string>().find("none is ranked. Try"), std::string::npos)
      << results["advice"];
}

// Pre-LN trains, but not at rates a thousand times too small.
TEST(StudyRounds, OfRatesThatAreTooSmallItIsNotSaidThatASchemeDoesNotTrain) {
  const TemporaryFolder folder;
  StudyConfig config = tiny_study({"pre"}, 40'000);
  config.rates = {1e-6, 3e-6};
  const json results = play_study(config, folder / "study"), verdict = verdict_of(results, "pre");
  EXPECT_EQ(verdict["verdict"], "not enough training to tell") << results["course"];
  EXPECT_NE(verdict["words"].get<std::string>().find("still above guessing level"), std::string::npos) << verdict;
  EXPECT_NE(results["advice"]["words"].get<std::string>().find("Try larger rates"), std::string::npos)
      << results["advice"];
}

// As on a machine that has become busy: what was planned to fit takes many times as long.
TEST(StudyRounds, ALongRunThatTakesLongerThanPlannedIsStoppedWhenTheTimeIsUp) {
  struct Watcher final : StudyObserver {
    void said(const std::string& what) override { told = told || what.find("the time is up") != what.npos; }
    void progressed(std::string_view part, double, std::string_view) override {
      if (part == "race") stop = true;
      if (part == "long") std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a minute for each run
    }
    std::atomic<bool> stop{false};
    bool told = false;
  } watcher;
  const TemporaryFolder folder;
  StudyConfig config =
      tiny_study({"pre", scheme_of("dead", "sublayer = \"x + f(norm(x))\"\nfinal = \"0*norm(x)\"\n")}, 0);
  config.budget = {StudyBudget::Unit::seconds, 1000};
  const auto play = [&] {
    watcher.stop = false;
    return run_study({.config = config, .directory = folder / "study"}, watcher, watcher.stop);
  };
  ASSERT_TRUE(play().interrupted) << "in its first race";
  const std::vector<std::string> schemes = {"pre", "dead"};
  StudyLog log = read_rounds(Folder(folder / "study"), print_budget(config.budget), schemes);
  log.before.seconds = 0.97 * config.budget.amount - 0.3;  // that much is left
  log.rounds = {{.stage = Stage::longest,
                 .steps = 3000,
                 .entries = {{.scheme = 1, .lr = 1e-2, .seeds = {1}}, {.scheme = 1, .lr = 3e-2, .seeds = {1}}},
                 .why = "at guessing level so far: dead"}};
  write_rounds(Folder(folder / "study"), log, schemes);
  const json results = json::parse(play().results_json);
  EXPECT_TRUE(watcher.told);
  const json round = results["course"]["rounds"].back();
  EXPECT_EQ(round["why"], "at guessing level so far: dead; stopped when the time was up");
  EXPECT_EQ(verdict_of(results, "dead")["verdict"], "not enough training to tell") << verdict_of(results, "dead");
  std::filesystem::remove(folder / "study/DONE");
  EXPECT_EQ(lasting(json::parse(play().results_json)), lasting(results)) << "what was cut stays cut";
}

// Its norms see all tokens at once: trained all the same it would win by far.
TEST(StudyRounds, ASchemeThatLeaksIsNamedAndNeverRecommended) {
  const SchemeChoice leaking = scheme_of("leaking", "title = \"Leaking\"\nsublayer = \"x + f(batchnorm(x))\"\n");
  const TemporaryFolder folder;
  const json results = play_study(tiny_study({leaking, "pre"}, 2000), folder / "study");
  const json verdict = verdict_of(results, "leaking");
  EXPECT_EQ(verdict["verdict"], "leaks");
  EXPECT_EQ(verdict["rank"], 0);
  EXPECT_NE(verdict["words"].get<std::string>().find("later token"), std::string::npos) << verdict;
  EXPECT_EQ(verdict_of(results, "pre")["rank"], 1);
  EXPECT_EQ(results["verdicts"].back()["scheme"], "leaking");
  EXPECT_EQ(results["advice"]["ranking"], json({"pre"}));
  const std::string advice = results["advice"]["words"];
  EXPECT_EQ(advice.find("use Leaking"), std::string::npos) << advice;
  EXPECT_NE(advice.find("Left out: Leaking"), std::string::npos) << advice;
  for (const json& comparison : results["comparisons"])
    EXPECT_TRUE(comparison["a"] != "leaking" && comparison["b"] != "leaking");
  const json alone = play_study(tiny_study({leaking}, 2000), folder / "alone");
  EXPECT_TRUE(alone["advice"]["ranking"].empty()) << alone["advice"];
}

TEST(StudyRounds, OfASchemeWhoseUpperHalfDoesNothingAtMostHalfTheDepthIsUsed) {
  const SchemeChoice half = scheme_of("half",
                                      "sublayer = \"x + on*f(norm(x))\"\nfinal = \"norm(x)\"\n"
                                      "[constants]\non = \"clamp(N/2 + 1 - l, 0, 1)\"\n");
  const TemporaryFolder folder;
  StudyConfig config = tiny_study({half}, 3000);
  override_config(config.base, "model.layers=4");
  config.depth_use = true;
  const json results = play_study(config, folder / "study");
  ASSERT_EQ(results["depth_use"].size(), 1u) << results["verdicts"];
  EXPECT_LE(results["depth_use"][0]["effective_depth"]["mean"], 2) << results["depth_use"];
  EXPECT_GT(results["depth_use"][0]["effective_depth"]["mean"], 0) << results["depth_use"];
}

TEST(StudyBudgets, UseOfDepthIsBoundedAndPaidForOutOfTheTime) {
  StudyConfig config;
  for (const auto& [all, depth] : {std::pair{9.0, 3.0}, {90.0, 30.0}, {120.0, 30.0}, {180.0, 36.0}, {3600.0, 720.0}}) {
    config.budget = {StudyBudget::Unit::seconds, all};
    EXPECT_DOUBLE_EQ(seconds_for_depth_use(config), depth);
    EXPECT_LT(seconds_for_training(config) + depth, all) << "the report takes time too";
    EXPECT_GT(seconds_for_training(config) + depth, 0.95 * all);
  }
  config.depth_use_whatever_it_takes = true;
  EXPECT_TRUE(std::isinf(seconds_for_depth_use(config)));
  config.depth_use_whatever_it_takes = config.depth_use = false;
  EXPECT_GT(seconds_for_training(config), 0.95 * 3600);
  config.budget = {StudyBudget::Unit::steps, 40000};
  EXPECT_TRUE(std::isinf(seconds_for_depth_use(config))) << "work is the same on every machine";
}

TEST(StudyBudgets, AreReadAndPrinted) {
  EXPECT_EQ(parse_budget("3min").amount, 180);
  EXPECT_EQ(parse_budget("1h").amount, 3600);
  EXPECT_EQ(parse_budget("2e9tokens").unit, StudyBudget::Unit::tokens);
  EXPECT_EQ(parse_budget("2e9tokens").amount, 2e9);
  EXPECT_EQ(parse_budget("40000steps").unit, StudyBudget::Unit::steps);
  EXPECT_EQ(parse_budget("0").unit, StudyBudget::Unit::none);
  EXPECT_EQ(print_budget(parse_budget("1.5h")), "5400s");
  EXPECT_EQ(describe_budget(parse_budget("3min")), "3 min");
  EXPECT_EQ(describe_budget({StudyBudget::Unit::seconds, 20.0 / 3}), "6.67 s") << "a part of a budget, among depths";
  EXPECT_EQ(describe_budget(parse_budget("40000steps")), "40000 steps");
  EXPECT_EQ(parse_budget(print_budget(parse_budget("7Mtokens"))).amount, 7e6);
  for (const char* wrong : {"", "min", "3", "3 parsecs", "-1h", "nan", "inf h"})
    EXPECT_THROW(parse_budget(wrong), Error) << wrong;
}

}  // namespace
}  // namespace norma
