// A sweep against the same runs alone, its files, its grid and its halving.
#include "norma/lab/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "lab/sweep_cohorts.h"
#include "lab/sweep_halving.h"
#include "norma/core/error.h"
#include "norma/lab/sweep_results.h"
#include "norma/store/run_directory.h"
#include "norma/train/trainer.h"
#include "temporary_folder.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

SweepConfig small_sweep(std::int64_t steps = 30) {
  SweepConfig config;
  for (const char* setting : {"model.layers=2", "model.width=16", "model.heads=2", "model.batch=4", "model.time=12",
                              "train.checkpoint_every=7", "train.evaluate_every=10", "train.log_every=5",
                              "train.dropout=0.1", "train.threads=1"})
    override_sweep(config, setting);
  override_sweep(config, "train.steps=" + std::to_string(steps));
  return config;
}

SweepResult sweep(const SweepConfig& config, const fs::path& directory) {
  SweepObserver observer;
  const std::atomic<bool> stop{false};
  return run_sweep({.config = config, .directory = directory}, observer, stop);
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was wrong";
}

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

void expect_same_bits(const fs::path& sweep, const fs::path& other, const std::string& id) {
  const SafetensorsFile one = RunView(sweep / "runs" / id).newest_checkpoint().newest->file;
  const SafetensorsFile two = RunView(other / "runs" / id).newest_checkpoint().newest->file;
  EXPECT_EQ(one.metadata(), two.metadata()) << id;
  ASSERT_EQ(one.tensors().size(), two.tensors().size());
  for (const TensorInfo& info : one.tensors()) {
    const auto a = one.bytes(info.name), b = two.bytes(info.name);
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << id << " " << info.name;
  }
}

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

TEST(Sweep, TheGridIsCheckedBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  const auto said = [&](const std::vector<std::string>& settings) {
    return message_of([&] {
      SweepConfig config = small_sweep();
      for (const std::string& setting : settings) override_sweep(config, setting);
      sweep(config, folder / "never");
    });
  };
  EXPECT_NE(said({}).find("the grid is empty"), std::string::npos) << said({});
  EXPECT_NE(said({"train.lr=[]"}).find("train.lr has no values"), std::string::npos);
  EXPECT_NE(said({"train.rl=[1, 2]"}).find("did you mean 'train.lr'"), std::string::npos) << said({"train.rl=[1, 2]"});
  EXPECT_NE(said({"train.lr=[1, fast]"}).find("'fast' was given; expected a number"), std::string::npos);
  EXPECT_NE(said({"train.lr=[1e-3, 0.001]"}).find("same run twice"), std::string::npos);
  EXPECT_NE(said({"members.lr=[1e-3, 0.001]"}).find("train.lr"), std::string::npos);
  EXPECT_NE(said({"model.heads=[2, 7]"}).find("heads"), std::string::npos) << said({"model.heads=[2, 7]"});
  std::string many = "train.seed=[0";
  for (int i = 1; i < 1000; ++i) many += "," + std::to_string(i);
  std::string rates = "train.data_seed" + many.substr(10);
  EXPECT_NE(said({many + "]", rates + "]"}).find("1000 x 1000 cells; expected at most"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder / "never"));
}

TEST(Sweep, AFileSaysTheSameAsTheCommandLine) {
  const SweepConfig file = parse_sweep(R"toml([train]
steps = 7
[sweep]
"model.scheme" = ["pre", "norm(x + f(x))"]
train.lr = [1e-4, 1e-3]
members = 5
halving = {eta = 2, min_steps = 3}
[[sweep.list]]
"model.layers" = 2
"model.width" = 32
[[sweep.list]]
"model.layers" = 4
"model.width" = 16
)toml",
                                       "sweep.toml");
  EXPECT_EQ(file.most_members, 5);
  ASSERT_TRUE(file.halving.has_value());
  EXPECT_EQ(file.halving->eta, 2);
  const std::vector<SweepCell> cells = sweep_cells(file);
  ASSERT_EQ(cells.size(), 8u);
  std::set<std::string> ids;
  for (const SweepCell& cell : cells) {
    EXPECT_EQ(cell.config.model.layers * cell.config.model.width, 64);
    EXPECT_EQ(cell.config.train.steps, 7);
    EXPECT_EQ(cell.id.find_first_of("/\"' ()"), std::string::npos) << cell.id;
    ids.insert(cell.id);
  }
  EXPECT_EQ(ids.size(), 8u);
  const std::vector<SweepCell> again = sweep_cells(parse_sweep(print_sweep(file), "printed"));
  ASSERT_EQ(again.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(again[i].id, cells[i].id);
  SweepConfig line;
  override_sweep(line, "train.steps=7");
  override_sweep(line, "model.scheme=[pre, norm(x + f(x))]");
  EXPECT_EQ(line.axes[0].values, file.axes[0].key == "model.scheme" ? file.axes[0].values : file.axes[1].values);
  EXPECT_NE(message_of([] { parse_sweep("[sweep]\ntrain.lr = [1, \"x\"]\n", "a.toml"); }).find("a.toml"),
            std::string::npos);
  EXPECT_NE(message_of([] { parse_sweep("[sweep]\ntrain.lr = [1\n", "a.toml"); }).find("line"), std::string::npos);
  EXPECT_NE(message_of([] { parse_sweep("[sweep]\nhalving = 3\n", "a.toml"); }).find("eta"), std::string::npos);
}

TEST(Sweep, GroupsShareAProgramAndPartsAreEven) {
  SweepConfig config = small_sweep();
  override_sweep(config, "model.layers=[2, 3]");
  override_sweep(config, "train.lr=[1e-3, 1e-2]");
  override_sweep(config, "train.seed=[1, 2]");
  override_sweep(config, "train.dropout=[0, 0.1, 0.2]");
  const std::vector<SweepCell> cells = sweep_cells(config);
  const std::vector<SweepGroup> groups = group_cells(cells);
  ASSERT_EQ(groups.size(), 4u) << "depth and whether there is dropout";
  for (const SweepGroup& group : groups) {
    for (const std::size_t cell : group.cells) {
      EXPECT_EQ(cells[cell].config.model.layers, cells[group.cells[0]].config.model.layers);
      EXPECT_EQ(cells[cell].config.train.dropout > 0, cells[group.cells[0]].config.train.dropout > 0);
    }
  }
  EXPECT_EQ(even_parts(10, 4), (std::vector<std::int64_t>{3, 3, 4}));
  EXPECT_EQ(even_parts(8, 8), (std::vector<std::int64_t>{8}));
  EXPECT_EQ(rung_steps(HalvingConfig{3, 100}, 1000), (std::vector<std::int64_t>{100, 300, 900, 1000}));
  EXPECT_EQ(rung_steps(HalvingConfig{3, 100}, 100), (std::vector<std::int64_t>{100}));
  EXPECT_EQ(rung_steps(std::nullopt, 50), (std::vector<std::int64_t>{50}));
}

}  // namespace
}  // namespace norma
