// A sweep against the same runs alone, and its halving.
#include "norma/lab/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "error_of.h"
#include "lab/sweep_check.h"
#include "norma/lab/sweep_results.h"
#include "norma/store/run_directory.h"
#include "norma/train/trainer.h"
#include "temporary_folder.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using test::expect_same_bits;
using test::small_sweep;
using test::sweep;
using test::TemporaryFolder;

TEST(Sweep, AMemberIsBitForBitTheRunAlone) {
  const TemporaryFolder folder;
  SweepConfig config = small_sweep();
  override_sweep(config, "model.scheme=[pre, post]");
  override_sweep(config, "train.lr=[1e-3, 1e5]");
  override_sweep(config, "train.clip=[0, 1]");
  const SweepResult result = sweep(config, folder / "sweep");
  ASSERT_EQ(result.outcomes.size(), 8u);
  EXPECT_FALSE(result.interrupted);
  const std::vector<SweepCell> cells = sweep_cells(config);
  int diverged = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const RunView member(folder.path() / "sweep/runs" / cells[i].id);
    const fs::path alone = folder / ("alone" + std::to_string(i));
    RunObserver observer;
    const std::atomic<bool> stop{false};
    run_training({.config = cells[i].config, .directory = alone}, observer, stop);
    EXPECT_EQ(member.config(), RunView(alone).config());
    ASSERT_EQ(member.checkpoint_steps().back(), RunView(alone).checkpoint_steps().back());
    const SafetensorsFile one = member.newest_checkpoint().newest->file;
    const SafetensorsFile other = RunView(alone).newest_checkpoint().newest->file;
    ASSERT_EQ(one.tensors().size(), other.tensors().size());
    for (const TensorInfo& info : one.tensors()) {
      const auto a = one.bytes(info.name), b = other.bytes(info.name);
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << cells[i].id << " " << info.name;
    }
    EXPECT_EQ(one.metadata(), other.metadata()) << cells[i].id;
    const RunOutcome lone = read_outcome(outcome_of("", {}, cells[i].config), alone);
    const RunOutcome& run = result.outcomes[i];
    EXPECT_EQ(run.status, lone.status);
    EXPECT_EQ(run.diverged_at_step, lone.diverged_at_step);
    EXPECT_EQ(run.evaluation_loss, lone.evaluation_loss);
    EXPECT_EQ(run.evaluations.loss, lone.evaluations.loss);
    EXPECT_EQ(run.first_bad_wire, lone.first_bad_wire);
    if (!run.diverged()) {
      EXPECT_EQ(run.final_loss, lone.final_loss);
      EXPECT_EQ(run.curve.loss, lone.curve.loss);
    }
    diverged += run.diverged() ? 1 : 0;
  }
  EXPECT_GE(diverged, 2);
  EXPECT_LT(diverged, 8);
  EXPECT_FALSE(fs::exists(folder / "sweep/cohorts") && !fs::is_empty(folder / "sweep/cohorts"));
}

TEST(Sweep, NothingIsDoneTwice) {
  const TemporaryFolder folder;
  SweepConfig config = small_sweep(12);
  override_sweep(config, "train.lr=[1e-3, 2e-3]");
  const SweepResult first = sweep(config, folder / "sweep");
  struct Counter final : SweepObserver {
    void stepped(const SweepProgress&, const Cohort& cohort) override { steps += cohort.members(); }
    int steps = 0;
  } counter;
  const std::atomic<bool> stop{false};
  const SweepResult again = run_sweep({.config = config, .directory = folder / "sweep"}, counter, stop);
  EXPECT_EQ(counter.steps, 0);
  EXPECT_EQ(again.outcomes[1].final_loss, first.outcomes[1].final_loss);
  override_sweep(config, "train.lr=[1e-3, 2e-3, 4e-3]");
  const SweepResult more = run_sweep({.config = config, .directory = folder / "sweep"}, counter, stop);
  EXPECT_EQ(counter.steps, 12) << "only the new cell trains";
  EXPECT_EQ(more.outcomes.size(), 3u);
  EXPECT_EQ(more.outcomes[0].final_loss, first.outcomes[0].final_loss);
}

TEST(Sweep, StoppedAtAnyStepItEndsWithTheSameBits) {
  const TemporaryFolder folder;
  SweepConfig config = small_sweep(20);
  override_sweep(config, "train.lr=[1e-3, 3e-3, 1e-2]");
  override_sweep(config, "model.scheme=[pre, post]");
  config.most_members = 2;
  const SweepResult straight = sweep(config, folder / "whole");
  struct Stopper final : SweepObserver {
    void stepped(const SweepProgress&, const Cohort&) override { stop = ++steps % 7 == 0; }
    int steps = 0;
    std::atomic<bool> stop{false};
  } stopper;
  SweepResult result;
  int starts = 0;
  do {
    stopper.stop = false;
    result = run_sweep({.config = config, .directory = folder / "broken"}, stopper, stopper.stop);
    ASSERT_LT(++starts, 100);
  } while (result.interrupted);
  EXPECT_GT(starts, 5);
  EXPECT_EQ(stopper.steps, 4 * 20) << "no step was taken twice";
  for (std::size_t i = 0; i < straight.outcomes.size(); ++i) {
    EXPECT_EQ(straight.outcomes[i].final_loss, result.outcomes[i].final_loss);
    EXPECT_EQ(straight.outcomes[i].curve.loss, result.outcomes[i].curve.loss);
    EXPECT_EQ(straight.outcomes[i].curve.step, result.outcomes[i].curve.step);
  }
}

TEST(Sweep, AMemberWhoseCheckpointsAreDamagedTrainsAgainToTheSameBits) {
  const TemporaryFolder folder;
  SweepConfig config = small_sweep(12);
  override_sweep(config, "train.lr=[1e-3, 2e-3]");
  const SweepResult before = sweep(config, folder / "sweep");
  const RunView member(folder.path() / "sweep/runs" / sweep_cells(config)[1].id);
  const std::string checkpoint = test::read_file(member.checkpoint_path(12));
  fs::remove(member.path() / "DONE");
  fs::resize_file(member.checkpoint_path(12), 1000);
  const SweepResult after = sweep(config, folder / "sweep");
  EXPECT_EQ(test::read_file(member.checkpoint_path(12)), checkpoint);
  ASSERT_EQ(after.outcomes.size(), before.outcomes.size());
  EXPECT_EQ(after.outcomes[1].curve.loss, before.outcomes[1].curve.loss);
  EXPECT_EQ(after.outcomes[1].final_loss, before.outcomes[1].final_loss);
}

TEST(Sweep, HalvingStopsTheHopelessAndLeavesTheOthersAsTheyWere) {
  const TemporaryFolder folder;
  SweepConfig config = small_sweep(40);
  override_sweep(config, "train.lr=[1e-5, 1e-3, 3e-3, 1e5]");
  override_sweep(config, "train.seed=[1, 2]");
  config.most_members = 3;
  const SweepResult full = sweep(config, folder / "full");
  config.halving = HalvingConfig{.eta = 2, .min_steps = 10};
  const SweepResult halved = sweep(config, folder / "halved");
  int stopped = 0, finished = 0;
  for (std::size_t i = 0; i < full.outcomes.size(); ++i) {
    const RunOutcome& run = halved.outcomes[i];
    ASSERT_NE(run.status, RunStatus::waiting) << run.id;
    if (run.status == RunStatus::stopped) {
      ++stopped;
      EXPECT_TRUE(run.stopped_at_step == 10 || run.stopped_at_step == 20) << run.stopped_at_step;
      EXPECT_EQ(run.last_step, run.stopped_at_step);
      EXPECT_TRUE(std::isinf(run.loss()));
      continue;
    }
    if (run.status == RunStatus::finished) ++finished;
    EXPECT_EQ(run.status, full.outcomes[i].status);
    EXPECT_EQ(run.final_loss, full.outcomes[i].final_loss) << run.id;
    EXPECT_EQ(run.evaluations.loss, full.outcomes[i].evaluations.loss);
    EXPECT_EQ(run.curve.step, full.outcomes[i].curve.step);
    EXPECT_EQ(run.curve.loss, full.outcomes[i].curve.loss);
  }
  EXPECT_EQ(finished, 2) << "of four settings two remain after the first rung and one after the second";
  EXPECT_GE(stopped, 2);
}

// Six cells in cohorts of at most four. Two of the first three diverge; the third and the other three then train
// together.
SweepConfig sweep_with_divergence() {
  SweepConfig config = small_sweep(100);
  override_sweep(config, "train.lr=[1e-3, 3e-3, 1e5]");
  override_sweep(config, "train.seed=[1, 2]");
  config.most_members = 4;
  return config;
}

struct CohortSteps final : SweepObserver {
  void started(const SweepProgress&, const Cohort& cohort) override { members.push_back(cohort.members()); }
  void stepped(const SweepProgress&, const Cohort&) override {
    ++steps;
    if (every > 0 && steps % every == 0) stop = true;
  }
  std::vector<int> members;
  int steps = 0, every = 0;
  std::atomic<bool> stop{false};
};

TEST(Sweep, PlacesOfDivergedMembersAreFilledByWaitingCells) {
  const TemporaryFolder folder;
  SweepConfig config = sweep_with_divergence();
  CohortSteps steps;
  const SweepResult packed = run_sweep({.config = config, .directory = folder / "packed"}, steps, steps.stop);
  EXPECT_EQ(steps.members, (std::vector<int>{3, 3, 4})) << "two that pause early, then all that are left";
  EXPECT_LT(steps.steps, 150) << "instead of two cohorts of 100 steps";
  config.most_members = 1;
  const SweepResult alone = sweep(config, folder / "alone");
  int diverged = 0;
  for (std::size_t i = 0; i < alone.outcomes.size(); ++i) {
    const RunOutcome &run = packed.outcomes[i], &lone = alone.outcomes[i];
    ASSERT_EQ(run.status, lone.status) << run.id;
    EXPECT_EQ(run.diverged_at_step, lone.diverged_at_step);
    EXPECT_EQ(run.last_step, lone.last_step);
    EXPECT_EQ(run.evaluations.loss, lone.evaluations.loss) << run.id;
    expect_same_bits(folder / "packed", folder / "alone", run.id);
    diverged += run.diverged() ? 1 : 0;
    EXPECT_EQ(run.curve.step, lone.curve.step) << run.id;
    if (run.diverged()) continue;  // its last loss need not be a number
    EXPECT_EQ(run.curve.loss, lone.curve.loss) << run.id;
    EXPECT_EQ(run.final_loss, lone.final_loss);
  }
  EXPECT_EQ(diverged, 2);
}

TEST(Sweep, StoppedWhilePlacesAreFilledNoStepIsTakenTwice) {
  const TemporaryFolder folder;
  const SweepConfig config = sweep_with_divergence();
  CohortSteps straight, broken;
  run_sweep({.config = config, .directory = folder / "whole"}, straight, straight.stop);
  broken.every = 3;
  SweepResult result;
  do {
    broken.stop = false;
    result = run_sweep({.config = config, .directory = folder / "broken"}, broken, broken.stop);
    ASSERT_LT(broken.members.size(), 200u);
  } while (result.interrupted);
  EXPECT_EQ(broken.steps, straight.steps);
  for (const RunOutcome& run : result.outcomes) expect_same_bits(folder / "broken", folder / "whole", run.id);
}

TEST(Sweep, ARampFindsTheRateAtWhichAModelDiverges) {
  const TemporaryFolder folder;
  SweepConfig config = small_sweep(80);
  for (const char* setting : {"train.schedule=ramp", "train.lr=1e4", "train.clip=0", "train.log_every=1",
                              "train.probes=false", "train.seed=[1, 2]"})
    override_sweep(config, setting);
  const SweepResult result = sweep(config, folder / "sweep");
  const std::vector<RampLimit> limits = ramp_limits(result.outcomes);
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_FALSE(limits[0].beyond);
  EXPECT_EQ(limits[0].lr.n, 2);
  for (const RunOutcome& run : result.outcomes) {
    ASSERT_TRUE(run.diverged());
    const double limit = ramp_limit(run);
    EXPECT_GT(limit, 0);
    EXPECT_LE(limit, 1e4 * static_cast<double>(run.diverged_at_step - 1) / 80);
    // The rate is the one that the optimiser was given at a step whose loss was still calm.
    const auto step = static_cast<std::size_t>(std::llround(limit * 80 / 1e4));
    ASSERT_LT(step, run.curve.loss.size());
    EXPECT_LE(
        run.curve.loss[step - 1],
        *std::min_element(run.curve.loss.begin(), run.curve.loss.begin() + static_cast<std::ptrdiff_t>(step)) + 1);
  }
}

}  // namespace
}  // namespace norma
