// A cohort that had ended but was not yet taken apart when a kill came, and then was damaged: nothing of the damage
// gets into its members, and nothing else is lost.
#include <gtest/gtest.h>

#include <fstream>

#include "error_of.h"
#include "lab/sweep/cohorts.h"
#include "lab/sweep/members.h"
#include "lab/sweep_check.h"
#include "norma/store/atomic_file.h"
#include "norma/train/trainer.h"
#include "temporary_folder.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using test::expect_same_bits;
using test::small_sweep;
using test::sweep;
using test::TemporaryFolder;

const std::string kCohort = "00000000000000aa";

SweepConfig two_members() {
  SweepConfig config = small_sweep(20);
  override_sweep(config, "train.lr=[1e-3, 2e-3]");
  return config;
}

struct Warnings final : SweepObserver {
  void warned(const std::string& what) override { all.push_back(what); }
  void stepped(const SweepProgress&, const Cohort&) override { ++steps; }
  std::vector<std::string> all;
  int steps = 0;
};

class FinishedCohort : public ::testing::Test {
 protected:
  FinishedCohort() {
    sweep(config_, whole());
    const SweepPaths paths{pristine()};
    Folder::make(pristine());
    write_atomically(pristine() / "sweep.toml", print_sweep(config_));
    const std::vector<SweepCell> cells = sweep_cells(config_);
    RunObserver observer;
    const std::atomic<bool> stop{false};
    run_training({.config = cohort_config({&cells[0], &cells[1]}), .directory = paths.cohort(kCohort)}, observer, stop);
    write_marker(paths, {.id = kCohort, .members = {cells[0].id, cells[1].id}, .from = 0, .until = 20});
  }

  fs::path whole() const { return folder_.path() / "whole"; }
  fs::path pristine() const { return folder_.path() / "pristine"; }
  fs::path broken() const { return folder_.path() / "broken"; }
  RunView cohort() const { return RunView(SweepPaths{broken()}.cohort(kCohort)); }

  // A copy, damaged by `damage`, brought to its end; how it went is in `warnings_`.
  template <typename Damage>
  void mend_after(Damage damage) {
    fs::remove_all(broken());
    fs::copy(pristine(), broken(), fs::copy_options::recursive);
    damage();
    warnings_ = std::make_unique<Warnings>();
    const std::atomic<bool> stop{false};
    const SweepResult result = run_sweep({.config = config_, .directory = broken()}, *warnings_, stop);
    EXPECT_FALSE(result.interrupted);
    for (const RunOutcome& run : result.outcomes) {
      EXPECT_EQ(run.status, RunStatus::finished);
      expect_same_bits(broken(), whole(), run.id);
    }
    const std::vector<RunOutcome> straight = read_outcomes(config_, whole());
    for (std::size_t i = 0; i < straight.size(); ++i) {
      EXPECT_EQ(result.outcomes[i].final_loss, straight[i].final_loss);
      EXPECT_EQ(result.outcomes[i].evaluation_loss, straight[i].evaluation_loss);
      EXPECT_EQ(result.outcomes[i].curve.loss, straight[i].curve.loss);
    }
  }

  const TemporaryFolder folder_;
  const SweepConfig config_ = two_members();
  std::unique_ptr<Warnings> warnings_;
};

TEST_F(FinishedCohort, IsTakenApartWithoutAStep) {
  mend_after([] {});
  EXPECT_TRUE(warnings_->all.empty());
  EXPECT_EQ(warnings_->steps, 0);
}

TEST_F(FinishedCohort, AFlippedBitInItsCheckpointNeverReachesAMember) {
  const std::string bytes = test::read_file(RunView(SweepPaths{pristine()}.cohort(kCohort)).checkpoint_path(20));
  const std::size_t key = bytes.find("norma.checksum");
  ASSERT_NE(key, std::string::npos);
  for (const std::size_t at :
       {std::size_t{9}, key + 6, key + 20, bytes.size() / 3, bytes.size() / 2, bytes.size() - 5}) {
    mend_after([&] {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 4);
      test::write_file(cohort().checkpoint_path(20), damaged);
    });
    EXPECT_FALSE(warnings_->all.empty()) << at;
    EXPECT_EQ(warnings_->steps, 6) << "from the checkpoint before, of step 14";
  }
}

TEST_F(FinishedCohort, WithoutCheckpointsItsMembersTrainAgain) {
  mend_after([&] {
    for (const std::int64_t step : cohort().checkpoint_steps()) fs::remove(cohort().checkpoint_path(step));
  });
  EXPECT_EQ(warnings_->steps, 20);
  ASSERT_EQ(warnings_->all.size(), 1u);
  EXPECT_NE(warnings_->all[0].find("train again from step 0"), std::string::npos) << warnings_->all[0];
}

TEST_F(FinishedCohort, ABrokenResultIsMadeAnew) {
  for (const std::string text : {"{}", "", "nonsense", "{\"members\": [1, 2], \"steps\": 20}", "{\"members\": []}"}) {
    mend_after([&] { test::write_file(cohort().result_path(), text); });
    EXPECT_EQ(warnings_->steps, 0) << text;
    EXPECT_EQ(warnings_->all.size(), 1u) << text;
  }
  mend_after([&] { fs::remove(cohort().result_path()); });
  EXPECT_EQ(warnings_->steps, 0);
}

TEST_F(FinishedCohort, RecordsThatAreLostAreTrainedAgain) {
  const std::string log = test::read_file(RunView(SweepPaths{pristine()}.cohort(kCohort)).metrics_path());
  for (const std::size_t bytes : {std::size_t{0}, log.size() / 2}) {
    mend_after([&] { test::write_file(cohort().metrics_path(), log.substr(0, bytes)); });
    EXPECT_EQ(warnings_->steps, 20) << bytes;
  }
  mend_after([&] { fs::remove(cohort().metrics_path()); });
  EXPECT_EQ(warnings_->steps, 20);
}

TEST_F(FinishedCohort, AFlippedDigitInItsRecordsIsNotCopied) {
  const std::string log = test::read_file(RunView(SweepPaths{pristine()}.cohort(kCohort)).metrics_path());
  const std::size_t digit = log.find("\"loss\":") + 11;
  mend_after([&] {
    std::string damaged = log;
    damaged[digit] = damaged[digit] == '7' ? '8' : '7';
    test::write_file(cohort().metrics_path(), damaged);
  });
  EXPECT_EQ(warnings_->steps, 20);
}

TEST_F(FinishedCohort, ADamagedMarkerIsNotBelieved) {
  const std::string marker = test::read_file(SweepPaths{pristine()}.marker(kCohort));
  for (const std::string& damaged :
       {std::string(), std::string("{}"), marker.substr(0, 20), std::string(marker).replace(marker.find("20"), 2, "21"),
        std::string(marker).replace(marker.find("checksum"), 8, "checksun")}) {
    mend_after([&] { test::write_file(SweepPaths{broken()}.marker(kCohort), damaged); });
    EXPECT_EQ(warnings_->steps, 20) << damaged;
    EXPECT_EQ(warnings_->all.size(), 1u) << damaged;
  }
}

TEST(Sweep, DamageInWhatHasEndedIsNoticed) {
  const TemporaryFolder folder;
  SweepConfig config = small_sweep(20);
  override_sweep(config, "train.lr=[1e-3, 2e-3]");
  config.halving = HalvingConfig{.eta = 2, .min_steps = 10};
  sweep(config, folder / "s");
  const RunView run(folder.path() / "s/runs" / sweep_cells(config)[0].id);
  const fs::path rung = fs::directory_iterator(folder / "s/rungs")->path();
  for (const fs::path& path : {run.result_path(), run.metrics_path(), rung}) {
    const std::string whole = test::read_file(path);
    const std::size_t digit = whole.find("loss\":") + 8;
    std::string damaged = whole;
    damaged[digit] = damaged[digit] == '7' ? '8' : '7';
    test::write_file(path, damaged);
    EXPECT_NE(test::error_of([&] { sweep(config, folder / "s"); }).find(path.string()), std::string::npos) << path;
    test::write_file(path, whole);
  }
  EXPECT_TRUE(sweep(config, folder / "s").finished_before);
}

TEST_F(FinishedCohort, KeepsWhatItHasWhenTheGridShrinks) {
  fs::copy(pristine(), broken(), fs::copy_options::recursive);
  SweepConfig other = small_sweep(20);
  override_sweep(other, "train.lr=[1e-3, 4e-3]");
  Warnings warnings;
  const std::atomic<bool> stop{false};
  const SweepResult result = run_sweep({.config = other, .directory = broken()}, warnings, stop);
  EXPECT_EQ(warnings.steps, 20) << "the new one alone";
  for (const RunOutcome& run : result.outcomes) EXPECT_EQ(run.status, RunStatus::finished) << run.id;
  expect_same_bits(broken(), whole(), result.outcomes[0].id);
}

// A member that waits for the next rung, and whose log was emptied meanwhile.
TEST(Sweep, AMemberWhoseLogWasEmptiedIsNotGoneOnWith) {
  const TemporaryFolder folder;
  SweepConfig config = small_sweep(40);
  override_sweep(config, "train.lr=[1e-3, 2e-3]");
  config.halving = HalvingConfig{.eta = 2, .min_steps = 20};
  struct Stopper final : SweepObserver {
    void stepped(const SweepProgress&, const Cohort& cohort) override { stop = cohort.step() >= 21; }
    std::atomic<bool> stop{false};
  } stopper;
  EXPECT_TRUE(run_sweep({.config = config, .directory = folder / "s"}, stopper, stopper.stop).interrupted);
  // As after a kill before the cohort of the second rung began.
  fs::remove_all(folder / "s/cohorts");
  std::string emptied;
  for (const SweepCell& cell : sweep_cells(config)) {
    const RunView run(folder.path() / "s/runs" / cell.id);
    if (run.is_done()) continue;
    emptied = run.metrics_path().string();
    test::write_file(emptied, "");
  }
  ASSERT_NE(emptied, "");
  const std::string message = test::error_of([&] { sweep(config, folder / "s"); });
  EXPECT_NE(message.find("'" + emptied + "' has no record of step 1, though the checkpoint is of step 20"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace norma
