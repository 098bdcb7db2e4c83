// A study from end to end in this process: rates beyond the grid, and going on after a stop.
#include "norma/lab/study.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lab/study_check.h"
#include "norma/lab/sweep.h"
#include "norma/models/model.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"
#include "temporary_folder.h"

namespace norma {
namespace {

using json = nlohmann::json;
using test::play_study;
using test::TemporaryFolder;

// Two rates that are both too small, so that the best is the larger one.
StudyConfig small_study() {
  StudyConfig config;
  config.schemes = {"pre", "post"};
  config.rates = {1e-3, 1e-4};
  config.warmups = {0};
  config.seeds = {1, 2};
  config.inspect = config.depth_use = false;
  config.budget = {};
  for (const char* setting : {"model.layers=2", "model.width=16", "model.heads=2", "model.batch=4", "model.time=16",
                              "train.steps=40", "train.threads=1"})
    override_config(config.base, setting);
  return config;
}

// What must not depend on how often a study was interrupted.
json outcome_of(json results) {
  for (json& run : results["runs"]) run.erase("tokens_per_second");
  return {results["runs"], results["maps"], results["tuned"], results["extra_rates"], results["verdicts"]};
}

TEST(Study, ASchemeWhoseBestRateIsAtTheEdgeGetsMoreRates) {
  const TemporaryFolder folder;
  StudyConfig config = small_study();
  config.extra_rates = 0;
  const json narrow = play_study(config, folder / "study");
  EXPECT_TRUE(narrow["extra_rates"].empty());
  EXPECT_EQ(narrow["runs"].size(), 8u);
  ASSERT_EQ(narrow["tuned"][0]["lr"], 1e-3) << narrow["verdicts"];
  config.extra_rates = 1;
  const json wide = play_study(config, folder / "study");  // in the same directory: only the new rate is trained
  ASSERT_EQ(wide["extra_rates"].size(), 2u) << wide["extra_rates"];
  EXPECT_EQ(wide["extra_rates"][0]["scheme"], "pre");
  EXPECT_EQ(wide["extra_rates"][0]["lr"], json({0.01}));
  EXPECT_EQ(wide["runs"].size(), 12u);
  for (const json& map : wide["maps"]) EXPECT_EQ(map["x"]["values"], json({1e-4, 1e-3, 1e-2}));
  EXPECT_LT(wide["tuned"][0]["loss"]["mean"], narrow["tuned"][0]["loss"]["mean"]);
  EXPECT_EQ(wide["tuned"][0]["lr"], 0.01);
  EXPECT_EQ(wide["extra_rates"][0]["edge"], "largest") << "one more was all that was allowed";
  // The mean over the two shared rates, above the best of all three.
  EXPECT_GT(wide["tuned"][0]["sensitivity"], narrow["tuned"][0]["sensitivity"]);
  ASSERT_FALSE(wide["notes"].empty());
  EXPECT_NE(wide["notes"].back().get<std::string>().find("(0.01)"), std::string::npos) << wide["notes"];
}

// Of three minutes 138 s are for training. Maps ran at 6e10 operations a second or more on two cores, so one of 4e12
// takes half of that; 9 blocks of width 16 on images of 16 x 16, which took 97 s and left no final, had four times as
// many.
TEST(Study, TheMapOfEveryFamilyLeavesMostOfTheTimeForWhatFollows) {
  constexpr double kMost = 4e12;
  for (const FamilyRow& row : families()) {
    if (row.study.schemes.empty()) continue;
    const StudyConfig config = default_study_of(Family(row.name));
    const RunConfig base = settle_task(config.base);
    const RunConfig resolved = resolve_config(base, *open_data(base));
    const auto runs =
        static_cast<double>(config.schemes.size() * config.rates.size() * config.warmups.size() * config.seeds.size());
    const double map = runs * static_cast<double>(config.base.train.steps) * model_flops(resolved.model);
    EXPECT_GT(map, 0) << row.name;
    EXPECT_LT(map, kMost) << row.name;
  }
}

TEST(Study, RatesStopWhereTheyBringNothing) {
  const TemporaryFolder folder;
  StudyConfig config = small_study();
  config.schemes = {"post"};
  config.rates = {1e-2, 1e2};  // the second one does not train
  config.extra_rates = 4;
  const json results = play_study(config, folder / "study");
  ASSERT_EQ(results["extra_rates"].size(), 1u) << results["verdicts"];
  EXPECT_EQ(results["extra_rates"][0]["lr"], json({1e-6})) << "downwards, and 0.01 is inside then";
  EXPECT_EQ(results["extra_rates"][0]["edge"], "none") << results["verdicts"];
}

TEST(Study, StoppedInAnyRoundItGoesOnWithoutTakingAStepTwice) {
  struct Counter final : StudyObserver {
    void progressed(std::string_view, double, std::string_view) override {
      ++steps;
      if (every > 0 && steps % every == 0) stop = true;
    }
    std::atomic<bool> stop{false};
    int steps = 0, every = 0;
  };
  const TemporaryFolder folder;
  const StudyConfig config = small_study();
  Counter straight, broken;
  const std::string whole =
      run_study({.config = config, .directory = folder / "whole"}, straight, straight.stop).results_json;
  EXPECT_GT(straight.steps, 2 * 40 + 40) << "both schemes, and more rates";
  broken.every = 13;
  StudyResult result;
  int starts = 0;
  do {
    broken.stop = false;
    result = run_study({.config = config, .directory = folder / "broken"}, broken, broken.stop);
    ASSERT_LT(++starts, 100);
  } while (result.interrupted);
  EXPECT_GT(starts, 5);
  EXPECT_EQ(broken.steps, straight.steps);
  EXPECT_EQ(outcome_of(json::parse(result.results_json)), outcome_of(json::parse(whole)));
}

}  // namespace
}  // namespace norma
