// Runs beside each other: groups, differences of configurations, and what seeds support.
#include "norma/lab/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "lab/planted_runs.h"
#include "norma/lab/run_list.h"

namespace norma {
namespace {

using test::TemporaryFolder;
using test::train_small;

// A finished run by its numbers, without training.
RunHistory finished(const std::string& name, const std::vector<std::string>& changes,
                    const std::vector<std::pair<std::int64_t, double>>& losses_by_seed) {
  RunHistory run{.path = name, .config = test::small_run(changes)};
  run.result = RunResult{.norma = "", .scheme = "", .task = ""};
  for (const auto& [seed, loss] : losses_by_seed) {
    MemberHistory member{.member = static_cast<int>(run.members.size()), .settings = run.config.train};
    member.settings.seed = seed;
    member.result = MemberResult{.member = member.member, .seed = seed, .final_loss = loss, .evaluation_loss = loss};
    run.result->members.push_back(*member.result);
    run.members.push_back(std::move(member));
  }
  return run;
}

TEST(Compare, RunsThatDifferInSeedsAloneAreOneGroup) {
  const RunComparison found = compare_runs({finished("a", {}, {{1, 2.0}}), finished("b", {"train.seed=2"}, {{2, 2.1}}),
                                            finished("c", {"model.scheme=post"}, {{1, 2.5}})});
  ASSERT_EQ(found.groups.size(), 2u);
  EXPECT_EQ(found.groups[0].runs.size(), 2u);
  EXPECT_EQ(found.groups[0].loss.n, 2);
  ASSERT_EQ(found.differences.size(), 1u);
  EXPECT_EQ(found.differences[0].key, "model.scheme");
}

TEST(Compare, RightAnswersOfClassifiersAreOverSeedsAndRecords) {
  RunHistory run = finished("a", {}, {{1, 0.5}, {2, 0.5}, {3, 0.5}});
  EXPECT_FALSE(compare_runs({run}).groups[0].accuracy.has_value()) << "there are none";
  for (MemberHistory& member : run.members) {
    member.result->scores = {{"accuracy", 0.8}, {"records", 200}};
    member.result->evaluation_records = 200;
  }
  const std::optional<Estimate> found = compare_runs({run}).groups[0].accuracy;
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->n, 3);
  EXPECT_NEAR(found->mean, 0.8, 1e-12);
  EXPECT_NEAR(found->high - found->low, 2 * 1.97 * std::sqrt(0.8 * 0.2 / 200), 0.01) << "seeds agree, records are few";
}

TEST(Compare, ARepeatedRunIsNoOtherSeed) {
  const RunComparison found = compare_runs({finished("a", {}, {{1, 2.0}}), finished("b", {}, {{1, 2.0}, {2, 2.1}})});
  ASSERT_EQ(found.groups.size(), 1u);
  EXPECT_EQ(found.groups[0].loss.n, 2) << "seed 1 counts once";
  EXPECT_DOUBLE_EQ(found.groups[0].loss.mean, 2.05);
  ASSERT_FALSE(found.notes.empty());
  EXPECT_NE(found.notes[0].find("seed 1 was run 2 times and counts once"), std::string::npos) << found.notes[0];
}

TEST(Compare, AClearDifferenceOnSharedSeedsIsSupported) {
  const RunComparison found =
      compare_runs({finished("a", {}, {{1, 2.0}, {2, 2.2}, {3, 2.1}, {4, 2.3}}),
                    finished("b", {"train.lr=0.1"}, {{4, 2.51}, {3, 2.3}, {2, 2.41}, {1, 2.2}, {9, 1.0}})});
  ASSERT_EQ(found.pairs.size(), 1u);
  const GroupDifference& pair = found.pairs[0];
  EXPECT_TRUE(pair.supported) << pair.words;
  EXPECT_EQ(pair.difference.n, 4);  // seed 9 has no partner
  EXPECT_NEAR(pair.difference.mean, -0.205, 1e-9);
  EXPECT_LT(pair.difference.high, 0);
}

TEST(Compare, OneSeedSupportsNothing) {
  const RunComparison found =
      compare_runs({finished("a", {}, {{1, 1.0}}), finished("b", {"train.lr=0.1"}, {{1, 9.0}})});
  ASSERT_EQ(found.pairs.size(), 1u);
  EXPECT_FALSE(found.pairs[0].supported);
  EXPECT_NE(found.pairs[0].words.find("one seed cannot tell"), std::string::npos);
}

TEST(Compare, OtherDataAreNotCompared) {
  const RunComparison found = compare_runs({finished("a", {}, {{1, 1.0}, {2, 1.1}, {3, 1.05}}),
                                            finished("b", {"data.task=sort"}, {{1, 2.0}, {2, 2.1}, {3, 2.05}})});
  ASSERT_EQ(found.pairs.size(), 1u);
  EXPECT_FALSE(found.pairs[0].supported);
  EXPECT_NE(found.pairs[0].words.find("cannot be compared"), std::string::npos);
}

TEST(Compare, EqualRunsAreToldApartNoOftenerThanStated) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 0.1);
  int told = 0;
  constexpr int kTrials = 400;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<RunHistory> runs;
    for (const char* rate : {"train.lr=0.001", "train.lr=0.002", "train.lr=0.003"}) {
      std::vector<std::pair<std::int64_t, double>> losses;
      for (int seed = 1; seed <= 4; ++seed) losses.emplace_back(seed, 2 + noise(random));
      runs.push_back(finished(rate, {rate}, losses));
    }
    const RunComparison found = compare_runs(runs);
    told += std::any_of(found.pairs.begin(), found.pairs.end(), [](const auto& pair) { return pair.supported; });
  }
  EXPECT_LE(told, 0.05 * kTrials + 3 * std::sqrt(0.05 * 0.95 * kTrials));
  EXPECT_GT(told, 0);  // it can tell at all
}

TEST(Compare, DivergedRunsHaveNoLoss) {
  RunHistory bad = finished("b", {"train.lr=0.1"}, {{1, 2.0}, {2, 3.0}});
  bad.members[1].result->outcome = Outcome::diverged;
  const RunComparison found = compare_runs({finished("a", {}, {{1, 2.0}, {2, 2.0}}), bad});
  EXPECT_EQ(found.groups[1].diverged, 1);
  EXPECT_EQ(found.pairs.at(0).difference.n, 1);
  EXPECT_FALSE(found.notes.empty());
  const auto json = nlohmann::json::parse(write_comparison(found));
  EXPECT_TRUE(json.at("runs").at(3).at("loss").is_null());
}

TEST(RunList, NamesWhatIsDamagedAndWhatIsForeign) {
  const TemporaryFolder folder;
  train_small(folder, "good", {"train.steps=10"});
  std::filesystem::create_directories(folder / "deep/er");
  train_small(folder, "deep/er/run", {"train.steps=5", "model.scheme=post"});
  std::filesystem::create_directory(folder / "photos");
  std::filesystem::copy(folder / "good", folder / "bad", std::filesystem::copy_options::recursive);
  test::write_file(folder / "bad/result.json", "{");
  std::filesystem::create_directory_symlink(folder / "good", folder / "link");
  folder.write("note.txt", "x");
  RunList list = list_runs(folder.path());
  ASSERT_EQ(list.runs.size(), 2u);
  EXPECT_EQ(list.runs[0].path, "deep/er/run");
  EXPECT_EQ(list.runs[1].path, "good");
  EXPECT_EQ(list.runs[1].steps, 10);
  EXPECT_GT(list.runs[1].parameters, 0);
  ASSERT_EQ(list.damaged.size(), 1u);
  EXPECT_EQ(list.damaged[0].path, "bad");
  EXPECT_NE(list.damaged[0].why.find("result.json"), std::string::npos);
  EXPECT_EQ(list.foreign, std::vector<std::string>{"photos"});
  sort_runs(list.runs, RunOrder::steps);
  EXPECT_EQ(list.runs[0].scheme, "post");
  sort_runs(list.runs, RunOrder::scheme);
  EXPECT_EQ(list.runs[1].scheme, "pre");
}

TEST(RunList, WhatHasNoLossComesLast) {
  std::vector<ListedRun> runs = {{.path = "c", .outcome = "", .loss = std::nan("")},
                                 {.path = "b", .outcome = "", .loss = 2},
                                 {.path = "a", .outcome = "", .loss = std::nan("")},
                                 {.path = "d", .outcome = "", .loss = 1}};
  sort_runs(runs, RunOrder::loss);
  std::string order;
  for (const ListedRun& run : runs) order += run.path;
  EXPECT_EQ(order, "dbac");
}

}  // namespace
}  // namespace norma
