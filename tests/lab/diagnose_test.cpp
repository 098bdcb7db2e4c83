// Runs that fail in a known way are diagnosed as that, and healthy ones as healthy.
#include "norma/lab/diagnose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "error_of.h"
#include "lab/planted_runs.h"
#include "norma/store/run_directory.h"

namespace norma {
namespace {

using test::TemporaryFolder;
using test::train_small;

Diagnosis diagnosis_of(const std::vector<std::string>& changes) {
  const TemporaryFolder folder;
  const RunHistory run = read_history(train_small(folder, "run", changes));
  const std::vector<Diagnosis> all = diagnose(run);
  EXPECT_EQ(all.size(), 1u);
  return all.at(0);
}

bool suggests(const Diagnosis& found, const std::string& change) {
  return std::any_of(found.suggestions.begin(), found.suggestions.end(), [&](const Suggestion& suggestion) {
    return std::any_of(suggestion.changes.begin(), suggestion.changes.end(),
                       [&](const std::string& one) { return one.starts_with(change); });
  });
}

double suggested_rate(const Diagnosis& found) {
  for (const Suggestion& suggestion : found.suggestions) {
    for (const std::string& change : suggestion.changes)
      if (change.starts_with("train.lr=")) return std::stod(change.substr(9));
  }
  return 0;
}

void expect_grounds(const Diagnosis& found) {
  ASSERT_FALSE(found.evidence.empty());
  EXPECT_GT(found.evidence[0].step, 0) << found.evidence[0].words;
  for (const Suggestion& suggestion : found.suggestions) EXPECT_FALSE(suggestion.because.empty()) << suggestion.words;
}

TEST(Diagnose, AHealthyRunGetsNoAlarm) {
  for (const char* scheme : {"pre", "deepnorm", "x+f(x)"}) {
    const Diagnosis found = diagnosis_of({"train.steps=300", std::string("model.scheme=") + scheme});
    EXPECT_EQ(found.condition, Condition::healthy) << scheme << ": " << found.words;
    EXPECT_EQ(found.cause, Cause::none) << scheme;
    EXPECT_TRUE(found.suggestions.empty()) << scheme;
  }
}

TEST(Diagnose, ARateAHundredTimesTooHigh) {
  for (const char* clip : {"train.clip=1", "train.clip=0"}) {
    const Diagnosis found = diagnosis_of({"train.lr=0.3", clip});
    EXPECT_TRUE(is_failure(found.condition)) << found.words;
    EXPECT_EQ(found.cause, Cause::rate_too_high) << found.words;
    expect_grounds(found);
    EXPECT_LE(suggested_rate(found), 0.01);
    EXPECT_GE(suggested_rate(found), 3e-4);
  }
}

TEST(Diagnose, ARateWithoutBoundsNamesTheFirstBadTensor) {
  const Diagnosis found = diagnosis_of({"train.lr=1e5", "train.clip=0", "train.steps=50"});
  EXPECT_EQ(found.cause, Cause::rate_too_high) << found.words;
  EXPECT_TRUE(std::any_of(found.evidence.begin(), found.evidence.end(), [](const DiagnosisEvidence& one) {
    return one.words.find("not finite") != std::string::npos && one.site.find("layers.") != std::string::npos;
  }));
  EXPECT_TRUE(suggests(found, "train.clip=1"));
}

TEST(Diagnose, PostLnAtDepthWithoutWarmup) {
  const Diagnosis found = diagnosis_of({"model.scheme=post", "model.layers=24", "train.steps=150"});
  EXPECT_EQ(found.condition, Condition::did_not_learn) << found.words;
  EXPECT_EQ(found.cause, Cause::gradients_vanish) << found.words;
  expect_grounds(found);
  EXPECT_TRUE(found.evidence[0].site.starts_with("layers.")) << found.evidence[0].words;
  const auto updates = std::ranges::find_if(found.evidence, [](const DiagnosisEvidence& one) {
    return one.words.find("that came with updates") != std::string::npos;
  });
  ASSERT_NE(updates, found.evidence.end());
  EXPECT_NE(updates->words.find("usual are 1e-03 to 1e-02"), std::string::npos)
      << "they may be larger than that, and whoever reads it must see that: " << updates->words;
  EXPECT_TRUE(suggests(found, "model.scheme=pre"));
  EXPECT_TRUE(suggests(found, "train.warmup="));
}

TEST(Diagnose, ARateOfZeroOrFarTooSmall) {
  for (const char* rate : {"train.lr=0", "train.lr=1e-8", "train.lr=1e-6"}) {
    const Diagnosis found = diagnosis_of({rate, "train.steps=100"});
    EXPECT_EQ(found.condition, Condition::did_not_learn) << rate;
    EXPECT_EQ(found.cause, Cause::rate_too_small) << rate << ": " << found.words;
    expect_grounds(found);
    EXPECT_GE(suggested_rate(found), 3e-4) << rate;
    EXPECT_LE(suggested_rate(found), 1e-2) << rate;
  }
}

// Its layers have no part in the output: a rate is not at fault, and no other rate helps.
TEST(Diagnose, WhereNoGradientArrivesTheRateIsNotBlamed) {
  const Diagnosis found = diagnosis_of({"model.scheme=f(x)*0", "train.steps=60"});
  EXPECT_EQ(found.condition, Condition::did_not_learn);
  EXPECT_EQ(found.cause, Cause::gradients_vanish) << found.words;
  EXPECT_NE(found.words.find("no gradient reaches any layer"), std::string::npos) << found.words;
  expect_grounds(found);
  EXPECT_TRUE(suggests(found, "model.scheme=pre"));
  EXPECT_FALSE(suggests(found, "train.lr=")) << "the gradient is 0 at any rate";
}

// Without a branch there is no layer with weights, and so no update: nothing is said of any.
TEST(Diagnose, WithoutRecordsOfLayersNothingIsSaidOfThem) {
  const Diagnosis found = diagnosis_of({"model.scheme=x*0", "train.steps=60"});
  EXPECT_EQ(found.cause, Cause::unknown) << found.words;
  EXPECT_EQ(found.words.find("as usual"), std::string::npos) << found.words;
  for (const Suggestion& one : found.suggestions) EXPECT_EQ(one.because.find("nan"), std::string::npos) << one.because;
}

TEST(Diagnose, AttentionThatStartsSaturated) {
  const TemporaryFolder folder;
  const std::string file = folder.write("hot.toml",
                                        "title = \"Hot\"\nsublayer = \"x + f(norm(x))\"\nfinal = \"norm(x)\"\n"
                                        "[init.gain]\nquery = 30\nkey = 30\n");
  const RunHistory run = read_history(train_small(folder, "run", {"model.scheme=" + file, "train.steps=150"}));
  const Diagnosis found = diagnose(run).at(0);
  EXPECT_TRUE(is_failure(found.condition)) << found.words;
  EXPECT_EQ(found.cause, Cause::attention_saturates) << found.words;
  EXPECT_TRUE(found.evidence[0].site.find("attn") != std::string::npos) << found.evidence[0].words;
  EXPECT_TRUE(suggests(found, "model.qk_norm="));
}

TEST(Diagnose, TooFewStepsAreSaidToBeThat) {
  const Diagnosis found = diagnosis_of({"train.steps=12", "train.lr=0.001", "train.log_every=1"});
  EXPECT_EQ(found.condition, Condition::undertrained) << found.words;
  EXPECT_EQ(found.cause, Cause::too_few_steps);
  EXPECT_TRUE(suggests(found, "train.steps="));
}

// It was said to have fallen from its first loss to its first loss, at a pace that two records do not tell.
TEST(Diagnose, OfTwoRecordsTheLastIsNotTheFirst) {
  const Diagnosis found = diagnosis_of({"train.steps=3", "train.lr=0.001", "train.log_every=10"});
  ASSERT_FALSE(found.evidence.empty());
  const std::string& words = found.evidence.front().words;
  const auto after = [&](const std::string& mark) { return words.substr(words.find(mark) + mark.size(), 6); };
  ASSERT_NE(words.find("the training loss "), std::string::npos) << words;
  EXPECT_NE(after(" from "), after(" to ")) << words;
  EXPECT_EQ(words.find("in 100 steps"), std::string::npos) << words;
}

TEST(Diagnose, WeightsThatHaveNotMovedHaveNotLearned) {
  const TemporaryFolder folder;
  RunHistory run = read_history(train_small(folder, "run", {"train.steps=30", "train.lr=1e-8"}));
  MemberResult& lucky = *run.members.at(0).result;
  lucky.outcome = Outcome::stable;
  lucky.evaluation_loss = *lucky.unigram_entropy - 0.05;
  const Diagnosis found = diagnose(run).at(0);
  EXPECT_EQ(found.condition, Condition::did_not_learn) << found.words;
  EXPECT_EQ(found.cause, Cause::rate_too_small) << found.words;
}

TEST(Diagnose, EveryMemberForItself) {
  const TemporaryFolder folder;
  const RunHistory run = read_history(train_small(folder, "run", {"members.lr=[0.003, 0.3]", "train.steps=300"}));
  const std::vector<Diagnosis> all = diagnose(run);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].condition, Condition::healthy) << all[0].words;
  EXPECT_EQ(all[1].cause, Cause::rate_too_high) << all[1].words;
}

// The same records with one number changed, as a run that has not ended.
TEST(Diagnose, AProbeThatIsNotFiniteIsNamed) {
  const TemporaryFolder folder;
  const std::filesystem::path path = train_small(folder, "run", {"train.steps=200", "train.log_every=20"});
  std::filesystem::remove(path / "DONE");
  std::filesystem::remove(path / "result.json");
  std::string metrics = test::read_file(path / "metrics.jsonl");
  const std::string probe = "\"branch_rms/layers.2.ffn\":";
  std::size_t at = 0;
  for (int line = 0; line < 5; ++line) at = metrics.find(probe, at + 1);
  at += probe.size();
  metrics.replace(at, metrics.find(',', at) - at, "NaN");
  test::write_file(path / "metrics.jsonl", metrics);
  const Diagnosis found = diagnose(read_history(path)).at(0);
  EXPECT_EQ(found.cause, Cause::not_finite) << found.words;
  EXPECT_NE(found.words.find("layers.2.ffn"), std::string::npos) << found.words;
  EXPECT_NE(found.words.find("step 80"), std::string::npos) << found.words;
  EXPECT_FALSE(found.notes.empty());  // that it has not ended
}

TEST(Diagnose, WhatIsNoRunIsNamedForWhatItIs) {
  const TemporaryFolder folder;
  EXPECT_EQ(test::error_of([&] { read_history(folder / "none"); }), "there is no run '" + (folder / "none") + "'");
  const std::string file = folder.write("file", "x");
  EXPECT_NE(test::error_of([&] { read_history(file); }).find("is a file"), std::string::npos);
  std::filesystem::create_directory(folder / "sweep");
  test::write_file(folder / "sweep/sweep.toml", "");
  EXPECT_NE(test::error_of([&] { read_history(folder / "sweep"); }).find("holds a sweep"), std::string::npos);
  std::filesystem::create_directory(folder / "empty");
  EXPECT_NE(test::error_of([&] { read_history(folder / "empty"); }).find("holds no run"), std::string::npos);
}

TEST(Diagnose, DamageIsAnErrorThatNamesTheFile) {
  const TemporaryFolder folder;
  const std::filesystem::path path = train_small(folder, "run", {"train.steps=20"});
  const std::string result = test::read_file(path / "result.json"), metrics = test::read_file(path / "metrics.jsonl");
  for (const char* name : {"result.json", "metrics.jsonl"}) {
    test::write_file(path / name, "{\"step\": [1, {}");
    EXPECT_NE(test::error_of([&] { read_history(path); }).find(name), std::string::npos);
    test::write_file(path / "result.json", result);
    test::write_file(path / "metrics.jsonl", metrics);
  }
  test::write_file(path / "config.toml", "[model\n");
  EXPECT_NE(test::error_of([&] { read_history(path); }).find("config.toml"), std::string::npos);
}

TEST(Diagnose, TrialsAreShorterCopiesWithOneChangeAndTheRunAsItWasFirst) {
  const TemporaryFolder folder;
  const RunHistory run = read_history(
      train_small(folder, "run", {"train.lr=1", "train.warmup=10", "members.seed=[5, 6]", "train.steps=500"}));
  const Diagnosis found = diagnose(run).at(1);
  const std::vector<Trial> trials = plan_trials(run, run.members[1], found, 0, {});
  ASSERT_GE(trials.size(), 3u);
  ASSERT_LE(trials.size(), 4u);
  for (const Trial& trial : trials) {
    EXPECT_LT(trial.config.train.steps, 500);
    EXPECT_EQ(trial.config.train.steps, trials[0].config.train.steps);
    EXPECT_EQ(trial.config.train.seed, 6);
    EXPECT_EQ(member_configs(trial.config).size(), 1u);
    EXPECT_GT(trial.seconds, 0);
  }
  EXPECT_EQ(trials[0].config.train.lr, 1);
  EXPECT_LT(trials[1].config.train.lr, 0.03);
  std::vector<TrialResult> results;
  RunObserver nobody;
  const std::atomic<bool> never = false;
  for (const Trial& trial : {trials[0], trials[1]}) {
    run_training({.config = trial.config, .directory = folder / trial.name}, nobody, never);
    results.push_back(read_trial(trial, folder / trial.name));
  }
  EXPECT_TRUE(results[0].outcome == Outcome::diverged || results[0].outcome == Outcome::did_not_learn);
  EXPECT_NE(conclude_trials(results, found).find("What helped most: lower the learning rate"), std::string::npos)
      << conclude_trials(results, found);
}

TEST(Diagnose, JsonHasWhatTheWordsRestOn) {
  const Diagnosis found = diagnosis_of({"train.lr=0.3", "train.steps=60"});
  const auto json = nlohmann::json::parse(write_diagnosis({.run = "here", .scheme = "pre", .members = {found}}));
  EXPECT_EQ(json.at("kind"), "diagnosis");
  const auto& member = json.at("members").at(0);
  EXPECT_EQ(member.at("cause"), "learning rate too high");
  EXPECT_GT(member.at("evidence").at(0).at("value").get<double>(), 0.1);
  EXPECT_EQ(member.at("evidence").at(0).at("step"), found.evidence[0].step);
  EXPECT_FALSE(member.at("suggestions").at(0).at("changes").empty());
}

}  // namespace
}  // namespace norma
