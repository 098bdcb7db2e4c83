// Sweeps and studies killed at the moments at which they bring something to disk: the same results, to the last bit.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <nlohmann/json.hpp>
#include <set>

#include "lab/sweep_check.h"
#include "norma/lab/results.h"
#include "norma/lab/study.h"
#include "sync_points.h"
#include "temporary_folder.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;
using test::small_sweep;
using test::sweep;
using test::TemporaryFolder;

// Everything but when it was and how fast it went.
json results_of(const std::vector<RunOutcome>& outcomes) {
  Results all = new_results(ResultsKind::sweep);
  add_outcomes(all, outcomes);
  json results = json::parse(write_results(all));
  results.erase("created");
  for (json& run : results["runs"]) run.erase("tokens_per_second");
  return results;
}

int temporaries_in(const fs::path& folder) {
  int count = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    count += entry.path().string().ends_with(".norma-tmp") ? 1 : 0;
  return count;
}

int syncs_of(const std::function<void()>& action) {
  int syncs = 0;
  test::on_sync = [&](const std::string&) { ++syncs; };
  action();
  test::on_sync = nullptr;
  return syncs;
}

// Rungs at which an evaluation is due, at which a checkpoint is, and at which neither is.
TEST(SweepKill, HalvingEndsWithTheSameResults) {
  const TemporaryFolder folder;
  SweepConfig config = small_sweep(40);
  for (const char* setting : {"train.lr=[1e-4, 1e-3, 3e-3, 1e5]", "train.evaluate_every=5", "train.checkpoint_every=5",
                              "train.log_every=8", "train.dropout=0", "train.clip=0"})
    override_sweep(config, setting);
  config.most_members = 3;
  config.halving = HalvingConfig{.eta = 2, .min_steps = 10};
  json straight;
  const int syncs = syncs_of([&] { straight = results_of(sweep(config, folder / "whole").outcomes); });
  ASSERT_GT(syncs, 60);
  int stopped = 0;
  for (const json& run : straight["runs"]) {
    if (run["status"] != "stopped") continue;
    ++stopped;
    EXPECT_TRUE(run["evaluation_loss"].is_number()) << run;
  }
  EXPECT_GT(stopped, 0);
  constexpr int kPlaces = 12;
  for (int i = 0; i < kPlaces; ++i) {
    const int at = 1 + i * (syncs - 1) / (kPlaces - 1);
    const std::string broken = folder / ("broken" + std::to_string(at));
    EXPECT_TRUE(test::killed_at_sync(at, [&] { sweep(config, broken); })) << at;
    const SweepResult result = sweep(config, broken);
    EXPECT_TRUE(results_of(result.outcomes) == straight) << "killed at sync " << at << " of " << syncs;
    EXPECT_EQ(temporaries_in(broken), 0) << at;
    EXPECT_TRUE(fs::is_empty(broken + "/cohorts")) << at;
  }
}

// Also between the last checkpoint of a cohort that keeps no weights and its result: then it trains again.
TEST(SweepKill, WhatKeepsNoWeightsEndsWithTheSameResults) {
  const TemporaryFolder folder;
  SweepConfig config = small_sweep(12);
  for (const char* setting : {"train.lr=[1e-3, 1e5]", "train.checkpoint_every=5", "train.dropout=0", "train.clip=0"})
    override_sweep(config, setting);
  const auto run = [&](const std::string& directory, KeepWeights weights) {
    SweepObserver observer;
    const std::atomic<bool> stop{false};
    return run_sweep({.config = config, .directory = directory, .weights = weights}, observer, stop).outcomes;
  };
  const json straight = results_of(run(folder / "with", KeepWeights::yes));
  // Whatever comes next after a checkpoint of a cohort has been brought to disk, and the first and last of all.
  int syncs = 0;
  std::set<int> places = {1};
  test::on_sync = [&](const std::string& path) {
    ++syncs;
    if (path.find("cohorts/") != std::string::npos && path.find("checkpoints") != std::string::npos)
      places.insert(syncs + 1);
  };
  EXPECT_TRUE(results_of(run(folder / "without", KeepWeights::no)) == straight);
  test::on_sync = nullptr;
  places.insert(syncs);
  ASSERT_GT(places.size(), 4u);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder / "without"))
    EXPECT_NE(entry.path().extension(), ".safetensors") << entry.path();
  for (const int at : places) {
    const std::string broken = folder / ("broken" + std::to_string(at));
    EXPECT_TRUE(test::killed_at_sync(at, [&] { run(broken, KeepWeights::no); })) << at;
    EXPECT_TRUE(results_of(run(broken, KeepWeights::no)) == straight) << "killed at sync " << at << " of " << syncs;
    EXPECT_TRUE(fs::is_empty(broken + "/cohorts")) << at;
  }
}

std::vector<std::string> statuses_in(const std::string& index) {
  sqlite3* database = nullptr;
  std::vector<std::string> all;
  EXPECT_EQ(sqlite3_open_v2(index.c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  const auto add = [](void* out, int, char** values, char**) {
    static_cast<std::vector<std::string>*>(out)->emplace_back(values[0]);
    return 0;
  };
  sqlite3_exec(database, "select status from runs", add, &all, nullptr);
  sqlite3_close(database);
  return all;
}

TEST(SweepKill, AStudyEndsWithTheSameResultsAndLeavesNothingBehind) {
  const TemporaryFolder folder;
  StudyConfig config;
  config.schemes = {"pre"};
  config.rates = {1e-3, 1e-2};
  config.warmups = {0};
  config.seeds = {1};
  config.extra_rates = 0;
  config.inspect = config.depth_use = false;
  config.budget = {};
  for (const char* setting : {"model.layers=2", "model.width=16", "model.heads=2", "model.batch=4", "model.time=16",
                              "train.steps=12", "train.threads=1"})
    override_config(config.base, setting);
  const auto study = [&](const std::string& directory) {
    StudyObserver observer;
    const std::atomic<bool> stop{false};
    return run_study({.config = config, .directory = directory}, observer, stop);
  };
  const auto runs_of = [](const StudyResult& result) {
    json runs = json::parse(result.results_json)["runs"];
    for (json& run : runs) run.erase("tokens_per_second");
    return runs;
  };
  StudyResult straight;
  const int syncs = syncs_of([&] { straight = study(folder / "whole"); });
  constexpr int kPlaces = 6;
  for (int i = 0; i < kPlaces; ++i) {
    const int at = syncs - i * (syncs - 1) / (kPlaces - 1);  // the last one among them
    const std::string broken = folder / ("broken" + std::to_string(at));
    EXPECT_TRUE(test::killed_at_sync(at, [&] { study(broken); })) << at;
    const StudyResult result = study(broken);
    EXPECT_TRUE(runs_of(result) == runs_of(straight)) << "killed at sync " << at << " of " << syncs;
    EXPECT_EQ(temporaries_in(broken), 0) << at;
    EXPECT_EQ(statuses_in(broken + "/sweep/index.sqlite"), (std::vector<std::string>{"finished", "finished"})) << at;
    EXPECT_TRUE(study(broken).finished_before) << at;
  }
}

}  // namespace
}  // namespace norma
