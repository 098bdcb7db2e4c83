// What a sweep concludes, on outcomes made up so that the answer is known.
#include "norma/lab/results.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace norma {
namespace {

RunOutcome made_up(const std::string& scheme, double lr, std::int64_t warmup, std::int64_t seed, double loss,
                   std::int64_t layers = 6) {
  RunOutcome run;
  run.id = scheme + std::to_string(lr) + std::to_string(warmup) + std::to_string(seed) + std::to_string(layers);
  run.scheme = scheme;
  run.layers = layers;
  run.lr = lr;
  run.warmup = warmup;
  run.seed = seed;
  run.steps = run.last_step = 100;
  run.status = RunStatus::finished;
  run.final_loss = run.best_loss = loss;
  run.evaluation_loss = run.best_evaluation_loss = loss;
  run.curve = {{1, 100}, {4, loss}};
  run.evaluations = {{50, 100}, {loss + 1, loss}};
  return run;
}

RunOutcome blown_up(const std::string& scheme, double lr, std::int64_t warmup, std::int64_t seed) {
  RunOutcome run = made_up(scheme, lr, warmup, seed, NAN);
  run.status = RunStatus::diverged;
  run.diverged_at_step = 40;
  run.evaluation_loss = run.best_evaluation_loss = std::nullopt;
  run.curve = {{1, 20}, {4, 3}};
  run.evaluations = {};
  return run;
}

TEST(SweepResults, SensitivityIsTheMeanLossAboveTheBest) {
  // Seed 1: 2.0, 2.5 and divergence (4 at the start); seed 2: 2.1, 2.3, 6, which counts as the start's 4.
  const Outcomes runs = {made_up("pre", 1e-3, 0, 1, 2.0), made_up("pre", 1e-2, 0, 1, 2.5),
                         blown_up("pre", 1e-1, 0, 1),     made_up("pre", 1e-3, 0, 2, 2.1),
                         made_up("pre", 1e-2, 0, 2, 2.3), made_up("pre", 1e-1, 0, 2, 6.0)};
  const auto found = sensitivity(runs);
  ASSERT_TRUE(found.has_value());
  const double first = (0 + 0.5 + 2.0) / 3, second = (0 + 0.2 + 1.9) / 3;
  EXPECT_NEAR(found->mean, (first + second) / 2, 1e-12);
  EXPECT_EQ(found->n, 2);
  // Two seeds: the half width is t(1) |a - b| / 2.
  EXPECT_NEAR(found->high - found->mean, 12.706 * std::abs(first - second) / 2, 1e-9);
  EXPECT_FALSE(sensitivity({made_up("pre", 1e-3, 0, 1, 2.0)}).has_value());
  EXPECT_FALSE(sensitivity({blown_up("pre", 1e-3, 0, 1), blown_up("pre", 1e-2, 0, 1)}).has_value());
}

TEST(SweepResults, SensitivityOverSharedRatesIsStillAboveTheBestOfAll) {
  const Outcomes runs = {made_up("pre", 1e-3, 0, 1, 2.0), made_up("pre", 1e-2, 0, 1, 1.5),
                         made_up("pre", 1e-1, 0, 1, 1.2)};
  EXPECT_NEAR(sensitivity(runs, {1e-3, 1e-2})->mean, (0.8 + 0.3) / 2, 1e-12);
  EXPECT_NEAR(tuned(runs, std::nullopt, {1e-3, 1e-2})[0].sensitivity->mean, (0.8 + 0.3) / 2, 1e-12);
  EXPECT_FALSE(sensitivity(runs, {1e-3}).has_value());
}

TEST(SweepResults, TheLargestStableRateEndsBelowTheFirstDivergence) {
  const Outcomes runs = {made_up("pre", 1e-3, 0, 1, 2), made_up("pre", 1e-2, 0, 1, 2),
                         blown_up("pre", 1e-1, 0, 1),   made_up("pre", 1, 0, 1, 2),  // an island that does not count
                         made_up("pre", 1e-3, 0, 2, 2), blown_up("pre", 1e-2, 0, 2),
                         blown_up("pre", 1e-1, 0, 2),   blown_up("pre", 1, 0, 2)};
  const StableRate rate = largest_stable_lr(runs);
  EXPECT_EQ(rate.lr, 1e-3);
  EXPECT_EQ(rate.low, 1e-3);
  EXPECT_EQ(rate.high, 1e-2);
  EXPECT_FALSE(rate.beyond);
  EXPECT_TRUE(largest_stable_lr({made_up("pre", 1e-3, 0, 1, 2)}).beyond);
  // Stuck at the frequencies of tokens: too small a rate is no instability, too large a one is.
  Outcomes stuck = {made_up("pre", 1e-6, 0, 1, 3), made_up("pre", 1e-3, 0, 1, 2), made_up("pre", 1e-1, 0, 1, 3)};
  for (RunOutcome& run : stuck) run.unigram_entropy = 2.9;
  EXPECT_EQ(largest_stable_lr(stuck).lr, 1e-3);
  EXPECT_FALSE(largest_stable_lr(stuck).beyond);
  const StableRate none = largest_stable_lr({blown_up("pre", 1e-3, 0, 1)});
  EXPECT_FALSE(none.lr.has_value());
  EXPECT_EQ(none.high, 0);
}

TEST(SweepResults, WarmupNeedIsTheSmallestThatLosesNothing) {
  Outcomes runs = {blown_up("post", 1e-2, 0, 1),       made_up("post", 1e-3, 0, 1, 2.6),
                   made_up("post", 1e-2, 50, 1, 2.03), made_up("post", 1e-3, 50, 1, 2.5),
                   made_up("post", 1e-2, 200, 1, 2.0), made_up("post", 1e-3, 200, 1, 2.4)};
  EXPECT_EQ(warmup_need(runs), 50);
  EXPECT_EQ(warmup_need(runs, 0.01), 200);
  EXPECT_EQ(warmup_need(runs, 1), 0);
  EXPECT_FALSE(warmup_need({blown_up("post", 1e-2, 0, 1)}).has_value());
}

TEST(SweepResults, TunedTakesTheBestMeanAndNeverASettingThatDiverged) {
  const Outcomes runs = {
      made_up("pre", 1e-3, 0, 1, 2.2),  made_up("pre", 1e-3, 0, 2, 2.4),   // mean 2.3
      made_up("pre", 1e-2, 0, 1, 1.0),  blown_up("pre", 1e-2, 0, 2),       // best seed, but one diverged
      made_up("pre", 1e-3, 50, 1, 2.1), made_up("pre", 1e-3, 50, 2, 2.3),  // mean 2.2: the best
      blown_up("post", 1e-3, 0, 1),     blown_up("post", 1e-3, 0, 2),
  };
  const std::vector<Tuned> all = tuned(runs);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].scheme, "pre");
  EXPECT_EQ(all[0].lr, 1e-3);
  EXPECT_EQ(all[0].warmup, 50);
  EXPECT_NEAR(all[0].loss.mean, 2.2, 1e-12);
  EXPECT_EQ(all[0].loss.n, 2);
  EXPECT_EQ(all[0].without_warmup.lr, 1e-3);
  EXPECT_FALSE(all[0].without_warmup.beyond);
  EXPECT_TRUE(all[0].with_warmup.beyond);
  EXPECT_NEAR(all[0].diverged, 1.0 / 6, 1e-12);
  EXPECT_NEAR(all[0].target, 2.3, 1e-12) << "the worst of the tuned runs";
  EXPECT_EQ(all[0].steps_to_target.steps.n, 2);
  EXPECT_NEAR(all[0].steps_to_target.steps.mean, 100, 1e-12);
  EXPECT_FALSE(all[1].lr.has_value());
  EXPECT_EQ(all[1].loss.n, 0);
  EXPECT_EQ(all[1].diverged, 1);
}

TEST(SweepResults, RunsThatStoppedEarlyNeverWin) {
  RunOutcome stopped = made_up("pre", 1e-3, 0, 1, 0.5);
  stopped.status = RunStatus::stopped;
  const std::vector<Tuned> all = tuned({stopped, made_up("pre", 1e-2, 0, 1, 2)});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].lr, 1e-2);
  EXPECT_FALSE(all[0].sensitivity.has_value());
}

TEST(SweepResults, StepsToTarget) {
  RunOutcome slow = made_up("pre", 1e-3, 0, 1, 2), fast = made_up("pre", 1e-3, 0, 2, 2);
  slow.evaluations = {{10, 20, 30, 40}, {4, 3, 2.5, 2}};
  fast.evaluations = {{10, 20, 30, 40}, {3, 2.4, 2.6, 2}};
  const StepsToTarget reached = steps_to_target({slow, fast}, 2.5);
  EXPECT_EQ(reached.steps.mean, 25);
  EXPECT_EQ(reached.seeds, 2);
  EXPECT_EQ(steps_to_target({slow, fast}, 1).steps.n, 0);
  // Where held-out losses are too few to tell, a single lucky batch does not count.
  slow.evaluations = {{5}, {2}};
  slow.curve = {{1, 2, 3, 4, 5}, {4, 1, 4, 2, 2}};
  EXPECT_EQ(steps_to_target({slow}, 2.5).steps.mean, 4);
  slow.curve = {{1, 2, 3, 4, 5}, {4, 4, 4, 4, 4}};
  EXPECT_EQ(steps_to_target({slow}, 2.5).steps.mean, 5) << "the evaluation at the end";
}

TEST(SweepResults, ASchemeThatLearnsNothingIsNotRobust) {
  Outcomes runs;
  for (const double lr : {1e-3, 1e-2}) {
    for (const std::int64_t warmup : {0, 40}) {
      runs.push_back(made_up("post", lr, warmup, 1, 2.775));
      runs.push_back(made_up("pre", lr, warmup, 1, 2.0 + lr));
    }
  }
  for (RunOutcome& run : runs) run.unigram_entropy = 2.772;
  const std::vector<Tuned> all = tuned(runs);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NEAR(all[0].loss.mean, 2.775, 1e-12) << "what it reached is still said";
  EXPECT_FALSE(all[0].sensitivity.has_value());
  EXPECT_FALSE(all[0].with_warmup.lr.has_value());
  EXPECT_FALSE(all[0].without_warmup.lr.has_value());
  EXPECT_FALSE(all[0].needs_warmup.has_value());
  EXPECT_EQ(all[0].steps_to_target.steps.n, 0);
  EXPECT_TRUE(all[1].sensitivity.has_value());
  EXPECT_EQ(all[1].without_warmup.lr, 1e-2);
  EXPECT_NEAR(all[1].target, 2.001, 1e-12) << "not that of a scheme that learns nothing";
}

TEST(SweepResults, MapsByWarmupAndByDepth) {
  const Outcomes runs = {made_up("pre", 1e-3, 0, 1, 2.0, 6),  made_up("pre", 1e-3, 0, 2, 2.2, 6),
                         blown_up("pre", 1e-2, 0, 1),         made_up("pre", 1e-2, 0, 2, 3, 6),
                         made_up("pre", 1e-3, 10, 1, 1.9, 6), made_up("pre", 1e-3, 0, 1, 1.8, 12)};
  const std::vector<StabilityMap> maps = stability_maps(runs);
  ASSERT_EQ(maps.size(), 3u)
      << "six layers by warmup; by depth without warmup and with it; twelve layers have one cell";
  const StabilityMap& warm = maps[0];
  EXPECT_EQ(warm.y_name, "warmup");
  EXPECT_EQ(warm.lr, (std::vector<double>{1e-3, 1e-2}));
  EXPECT_EQ(warm.y, (std::vector<double>{0, 10}));
  EXPECT_NEAR(warm.loss[0][0].mean, 2.1, 1e-12);
  EXPECT_EQ(warm.diverged[0][1], 0.5);
  EXPECT_EQ(warm.loss[0][1].n, 1);
  EXPECT_TRUE(std::isnan(warm.diverged[1][1])) << "not run";
  EXPECT_EQ(maps[1].y_name, "layers");
  EXPECT_EQ(maps[1].y, (std::vector<double>{6, 12}));
  EXPECT_NEAR(maps[1].loss[1][0].mean, 1.8, 1e-12);
}

TEST(SweepResults, DepthEfficiency) {
  Outcomes runs;
  for (const std::int64_t layers : {4, 8, 16, 32}) {
    for (const std::int64_t seed : {1, 2}) {
      // A tenth of a nat for every doubling, and a constant between the seeds.
      const double doublings = std::log2(static_cast<double>(layers) / 4);
      runs.push_back(made_up("pre", 1e-3, 0, seed, 3 - 0.1 * doublings + 0.01 * static_cast<double>(seed), layers));
      runs.push_back(made_up("post", 1e-3, 0, seed, layers == 4 ? 2.5 : 2.46, layers));
    }
  }
  const std::vector<DepthEfficiency> found = depth_efficiency(tuned(runs));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found[0].gain_per_doubling->mean, 0.1, 1e-12);
  EXPECT_NEAR(found[0].gain_per_doubling->high, 0.1, 1e-9);
  EXPECT_EQ(found[0].useful_layers, 32);
  EXPECT_EQ(found[1].useful_layers, 4);
  EXPECT_NEAR(found[1].useful_share, 0.125, 1e-12);
}

TEST(SweepResults, TheRampEndsAtTheLastCalmStep) {
  RunOutcome run = blown_up("post", 5e-2, 0, 1);
  run.schedule = "ramp";
  run.steps = 1000;
  run.diverged_at_step = 500;
  run.curve = {{1, 100, 200, 300, 400}, {4, 3, 2.5, 3.9, 4.2}};  // above 2.5 + 1 from step 300 on
  EXPECT_NEAR(ramp_limit(run), 5e-2 * 0.2, 1e-15);
  run.curve = {{1, 100, 200}, {4, 3, 2.5}};
  EXPECT_NEAR(ramp_limit(run), 5e-2 * 0.499, 1e-15) << "calm at the last record, then not finite";
  RunOutcome other = made_up("post", 5e-2, 0, 2, 2);
  other.schedule = "ramp";
  const std::vector<RampLimit> limits = ramp_limits({run, other});
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_TRUE(limits[0].beyond);
  EXPECT_EQ(limits[0].lr.n, 2);
  EXPECT_TRUE(contests({run, other}).empty()) << "a ramp is no contest";
}

TEST(SweepResults, TheRestOfTheAxesSeparatesContests) {
  RunOutcome narrow = made_up("pre", 1e-3, 0, 1, 2), wide = made_up("pre", 1e-3, 0, 1, 1.5);
  narrow.axes = {{"model.width", "16"}, {"train.lr", "0.001"}};
  wide.axes = {{"model.width", "64"}, {"train.lr", "0.001"}};
  const std::vector<Contest> found = contests({narrow, wide});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].name(), "pre, 6 layers, width=64");
}

TEST(SweepResults, BoundsOfTheTaskAreOnlyThoseThatAllRunsShare) {
  Outcomes runs = {made_up("pre", 1e-3, 0, 1, 2), made_up("pre", 1e-3, 0, 2, 2)};
  const auto task = [&] { return task_of(runs, "grammar"); };
  for (RunOutcome& run : runs) run.optimum = 1.25;
  runs[0].unigram_entropy = 2.77;
  runs[1].unigram_entropy = 2.76;
  EXPECT_EQ(task().optimum, 1.25);
  EXPECT_EQ(task().unigram, 2.77);
  runs[1].optimum = 1.5;
  runs[1].unigram_entropy = 3.2;
  EXPECT_FALSE(task().optimum || task().unigram);
  runs[1].optimum.reset();
  EXPECT_FALSE(task().optimum) << "not known of all";
}

TEST(SweepResults, JsonHoldsEveryPart) {
  const Outcomes runs = {made_up("pre", 1e-3, 0, 1, 2), blown_up("pre", 1e-2, 0, 1), blown_up("post", 1e-3, 0, 1)};
  Results results = new_results(ResultsKind::sweep);
  add_outcomes(results, runs);
  const auto all = nlohmann::json::parse(write_results(results));
  EXPECT_EQ(all["kind"], "sweep");
  ASSERT_EQ(all["runs"].size(), 3u);
  EXPECT_EQ(all["runs"][1]["diverged_at_step"], 40);
  EXPECT_EQ(all["runs"][1]["final_loss"], "nan");
  EXPECT_EQ(all["runs"][0]["evaluations"]["step"][1], 100);
  EXPECT_EQ(all["tuned"][0]["loss"]["n"], 1);
  EXPECT_EQ(all["tuned"][0]["largest_stable_lr_without_warmup"], 1e-3);
  EXPECT_TRUE(all["tuned"][1]["lr"].is_null());
  EXPECT_EQ(all["maps"][0]["diverged"][0][1], 1);
}

}  // namespace
}  // namespace norma
