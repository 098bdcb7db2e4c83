// Directories that are not what they should be: links, other kinds, other data, beginnings that were killed.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include "error_of.h"
#include "lab/sweep_check.h"
#include "norma/lab/study.h"
#include "norma/train/trainer.h"
#include "temporary_folder.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::small_sweep;
using test::sweep;
using test::TemporaryFolder;

SweepConfig tiny_sweep() {
  SweepConfig config = small_sweep(4);
  override_sweep(config, "train.lr=[1e-3, 2e-3]");
  return config;
}

StudyConfig tiny_study() {
  StudyConfig config;
  config.schemes = {"pre"};
  config.rates = {1e-3};
  config.warmups = {0};
  config.seeds = {1};
  config.extra_rates = 0;
  config.inspect = config.depth_use = false;
  config.base = small_sweep(4).base;
  return config;
}

StudyResult studied(const StudyConfig& config, const std::string& directory) {
  StudyObserver observer;
  const std::atomic<bool> stop{false};
  return run_study({.config = config, .directory = directory}, observer, stop);
}

RunEnd trained(const RunConfig& config, const std::string& directory) {
  RunObserver observer;
  const std::atomic<bool> stop{false};
  return run_training({.config = config, .directory = directory}, observer, stop);
}

std::string contents_of(const fs::path& folder) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string all;
  for (const std::string& file : files) all += file + "\n";
  return all;
}

TEST(SweepDirectory, FoldersThatAreLinksAreRefusedAndLeftAlone) {
  for (const std::string name : {"cohorts", "runs", "rungs"}) {
    const TemporaryFolder folder;
    fs::create_directories(folder / "others/00000000000000aa");
    fs::create_directories(folder / "others/photos");
    folder.write("others/photos/one", "x");
    folder.write("others/.one.1-1.norma-tmp", "x");
    sweep(tiny_sweep(), folder / "s");
    fs::remove_all(folder / ("s/" + name));
    fs::create_directory_symlink(folder / "others", folder / ("s/" + name));
    const std::string before = contents_of(folder / "others");
    EXPECT_NE(error_of([&] { sweep(tiny_sweep(), folder / "s"); }).find("is a link"), std::string::npos) << name;
    EXPECT_EQ(contents_of(folder / "others"), before) << name;
  }
}

TEST(SweepDirectory, OnlyWhatNormaMadeIsRemovedAmongCohorts) {
  const TemporaryFolder folder;
  sweep(tiny_sweep(), folder / "s");
  fs::create_directories(folder / "s/cohorts/photos");
  fs::create_directories(folder / "s/cohorts/00000000000000aa/checkpoints");
  folder.write("s/cohorts/00000000000000aa/environment.json", "{}");
  fs::create_directories(folder / "s/cohorts/00000000000000bb");
  folder.write("s/cohorts/00000000000000bb/diary", "x");
  folder.write("s/cohorts/.00000000000000aa.json.7-1.norma-tmp", "x");
  sweep(tiny_sweep(), folder / "s");
  EXPECT_EQ(contents_of(folder / "s/cohorts"), folder / "s/cohorts/00000000000000bb\n" +
                                                   folder / "s/cohorts/00000000000000bb/diary\n" +
                                                   folder / "s/cohorts/photos\n");
}

TEST(SweepDirectory, AnIndexThatIsALinkIsRefused) {
  const TemporaryFolder folder;
  sweep(tiny_sweep(), folder / "s");
  folder.write("letters", "years of letters");
  fs::remove(folder / "s/index.sqlite");
  fs::create_symlink(folder / "letters", folder / "s/index.sqlite");
  EXPECT_NE(error_of([&] { sweep(tiny_sweep(), folder / "s"); }).find("index.sqlite' is a link"), std::string::npos);
  EXPECT_EQ(test::read_file(folder / "letters"), "years of letters");
}

TEST(SweepDirectory, RunsSweepsAndStudiesKeepOutOfEachOthers) {
  const TemporaryFolder folder;
  const std::string run = folder / "run", grid = folder / "sweep", whole = folder / "study";
  trained(tiny_study().base, run);
  sweep(tiny_sweep(), grid);
  studied(tiny_study(), whole);
  const auto refused = [&](const std::string& place, const std::string& words, const std::function<void()>& action) {
    const std::string before = contents_of(place);
    const std::string message = error_of(action);
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_EQ(contents_of(place), before);
  };
  refused(run, "holds a run; a sweep needs", [&] { sweep(tiny_sweep(), run); });
  refused(run, "holds a run; a study needs", [&] { studied(tiny_study(), run); });
  refused(grid, "holds a sweep; a study needs", [&] { studied(tiny_study(), grid); });
  refused(grid, "a run needs a directory of its own", [&] { trained(tiny_study().base, grid); });
  refused(whole, "holds a study; a sweep needs", [&] { sweep(tiny_sweep(), whole); });
  refused(whole, "a run needs a directory of its own", [&] { trained(tiny_study().base, whole); });
  fs::remove(fs::path(whole) / "study.toml");
  refused(whole, "holds a study; a sweep needs", [&] { sweep(tiny_sweep(), whole); });
  EXPECT_EQ(studied(tiny_study(), whole).interrupted, false) << "a study of an earlier version goes on";
}

TEST(SweepDirectory, ABeginningThatWasKilledBeginsAgain) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "made");
  fs::create_directories(folder / "before-the-lock/runs");
  fs::create_directories(folder / "before-the-file/runs");
  folder.write("before-the-file/.lock", "17\n");
  folder.write("before-the-file/schemes.json", "{}");
  folder.write("before-the-file/.sweep.toml.17-3.norma-tmp", "ha");
  for (const char* name : {"made", "before-the-lock", "before-the-file"})
    EXPECT_EQ(sweep(tiny_sweep(), folder / name).outcomes.size(), 2u) << name;
  fs::create_directories(folder / "full/runs/of/others");
  EXPECT_NE(error_of([&] { sweep(tiny_sweep(), folder / "full"); }).find("something else than a sweep ('runs')"),
            std::string::npos);
}

TEST(SweepDirectory, BeginsAgainAfterRunningOutOfInodes) {
  for (int inodes = 2; inodes < 12; ++inodes) {
    const TemporaryFolder folder;
    const std::string options = "nr_inodes=" + std::to_string(inodes);
    if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, options.c_str()) != 0)
      GTEST_SKIP() << "a small file system cannot be mounted here";
    const std::string message = error_of([&] { sweep(tiny_sweep(), folder / "s"); });
    ::mount("tmpfs", folder.path().c_str(), "tmpfs", MS_REMOUNT, "nr_inodes=10000");
    const bool told = message.find("No space left on device") != std::string::npos ||
                      message.find("the index") != std::string::npos;  // SQLite does not say why
    EXPECT_TRUE(told) << inodes << ": " << message;
    EXPECT_EQ(error_of([&] { EXPECT_EQ(sweep(tiny_sweep(), folder / "s").outcomes.size(), 2u); }), "") << inodes;
    ::umount2(folder.path().c_str(), MNT_DETACH);
  }
}

TEST(SweepDirectory, ChangedDataAreRefused) {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", std::string(2000, 'a') + std::string(2000, 'b'));
  SweepConfig config = tiny_sweep();
  override_sweep(config, "data.task=text");
  override_sweep(config, "data.path=" + text);
  StudyConfig compared = tiny_study();
  compared.base.data.task = "text";
  compared.base.data.path = text;
  sweep(config, folder / "s");
  studied(compared, folder / "study");
  EXPECT_TRUE(fs::exists(folder / "s/data.json"));
  const std::string same = test::read_file(text);
  fs::remove(text);
  EXPECT_TRUE(sweep(config, folder / "s").finished_before) << "what has ended needs no data";
  EXPECT_TRUE(studied(compared, folder / "study").finished_before);
  folder.write("text", same);
  EXPECT_TRUE(sweep(config, folder / "s").finished_before) << "the same content of another time";

  folder.write("text", std::string(2000, 'a') + std::string(2000, 'c'));
  override_sweep(config, "train.lr=[1e-3, 2e-3, 4e-3]");
  const std::string message = error_of([&] { sweep(config, folder / "s"); });
  EXPECT_NE(message.find("have changed since it began: '" + text + "' holds something else in the same 4000 bytes"),
            std::string::npos)
      << message;
  EXPECT_NE(error_of([&] { studied(compared, folder / "study"); }).find("have changed since it began"),
            std::string::npos);
  folder.write("text", same);
  EXPECT_EQ(sweep(config, folder / "s").outcomes.size(), 3u);
}

TEST(StudyDirectory, ADifferentStudyIsNotTheFinishedOne) {
  const TemporaryFolder folder;
  StudyConfig config = tiny_study();
  const StudyResult first = studied(config, folder / "s");
  EXPECT_FALSE(first.finished_before);
  const StudyResult again = studied(config, folder / "s");
  EXPECT_TRUE(again.finished_before);
  EXPECT_EQ(again.results_json, first.results_json) << "with the time that it took";
  config.base.train.threads = 2;
  EXPECT_TRUE(studied(config, folder / "s").finished_before) << "threads change no bit";
  config.rates = {1e-3, 2e-3};
  EXPECT_FALSE(studied(config, folder / "s").finished_before);
  test::write_file(folder / "s/results.json", "{");
  EXPECT_FALSE(studied(config, folder / "s").finished_before) << "damaged results are made anew";
}

}  // namespace
}  // namespace norma
