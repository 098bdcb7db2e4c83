// A trained run as every verb reads it: whole checkpoints only, data as they were.
#include "norma/train/trained_run.h"

#include <gtest/gtest.h>

#include "error_of.h"
#include "norma/train/data_record.h"
#include "norma/train/generate.h"
#include "norma/train/trainer.h"
#include "temporary_folder.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TemporaryFolder;

RunConfig tiny_run() {
  RunConfig config;
  for (const char* setting : {"model.layers=1", "model.width=8", "model.heads=2", "model.batch=2", "model.time=8",
                              "train.steps=6", "train.checkpoint_every=2", "train.log_every=2", "train.threads=1"})
    override_config(config, setting);
  return config;
}

RunEnd train(const RunConfig& config, const std::string& directory) {
  RunObserver observer;
  const std::atomic<bool> stop{false};
  return run_training({.config = config, .directory = directory}, observer, stop);
}

TEST(TrainedRun, IsTheNewestWholeCheckpoint) {
  const TemporaryFolder folder;
  train(tiny_run(), folder / "run");
  const TrainedRun whole(folder / "run");
  EXPECT_EQ(whole.step(), 6);
  EXPECT_TRUE(whole.warnings().empty());
  fs::resize_file(RunView(folder / "run").checkpoint_path(6), 1000);
  const TrainedRun older(folder / "run");
  EXPECT_EQ(older.step(), 4);
  ASSERT_EQ(older.warnings().size(), 1u);
  EXPECT_NE(older.warnings()[0].find("the checkpoint of step 4 is used"), std::string::npos) << older.warnings()[0];
  EXPECT_EQ(open_trained(folder / "run").step, 4);
  EXPECT_EQ(open_trained(folder / "run").warnings, older.warnings());
  fs::remove(RunView(folder / "run").checkpoint_path(4));
  const std::string lost = error_of([&] { TrainedRun(folder / "run"); });
  EXPECT_NE(lost.find("holds no checkpoint that is whole: "), std::string::npos) << lost;
}

TEST(TrainedRun, EveryFlippedBitOfAFileIsNoticed) {
  const TemporaryFolder folder;
  train(tiny_run(), folder / "run");
  const std::string bytes = test::read_file(RunView(folder / "run").checkpoint_path(6));
  const std::size_t key = bytes.find("norma.checksum");
  ASSERT_NE(key, std::string::npos);
  EXPECT_EQ(TrainedRun(folder.write("whole", bytes)).step(), 6);
  // Inside the name of the checksum, where damage would make it a file without one; and all over.
  std::vector<std::size_t> bits;
  for (std::size_t bit = 8 * (key - 4); bit < 8 * (key + 44); ++bit) bits.push_back(bit);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += 4999) bits.push_back(bit);
  for (const std::size_t bit : bits) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const std::string path = folder.write("damaged", damaged);
    EXPECT_NE(error_of([&] { TrainedRun run(path); }), "") << bit;
  }
}

RunConfig text_run(const std::string& text) {
  RunConfig config = tiny_run();
  config.data.task = "text";
  config.data.path = text;
  return config;
}

// As after a kill behind the checkpoint of step 4.
void reopen(const std::string& run) {
  reopen_run(Folder(run));
  fs::remove(RunView(run).checkpoint_path(6));
}

TEST(Trainer, ARunOnOtherDataIsNotGoneOnWith) {
  const TemporaryFolder folder;
  const std::string before = std::string(3000, 'a') + std::string(3000, 'b');
  const std::string text = folder.write("text", before), run = folder / "run";
  train(text_run(text), run);
  const std::string last = test::read_file(RunView(run).checkpoint_path(6));
  reopen(run);
  for (const std::string& other : {before + "c", std::string(3000, 'a') + std::string(3000, 'c')}) {
    folder.write("text", other);
    const std::string message = error_of([&] { train(text_run(text), run); });
    EXPECT_NE(message.find("the data of the run in '" + run + "' have changed since it began: '" + text + "' h"),
              std::string::npos)
        << message;
    const TrainedRun read(run);
    ASSERT_EQ(read.warnings().size(), 1u) << "to be read it needs no data, but one should know";
    EXPECT_NE(read.warnings()[0].find("the data have changed"), std::string::npos);
  }
  folder.write("text", before);  // of another time
  EXPECT_EQ(train(text_run(text), run), RunEnd::finished);
  EXPECT_EQ(test::read_file(RunView(run).checkpoint_path(6)), last);
  EXPECT_EQ(train(text_run(text), run), RunEnd::finished_before);
  fs::remove(text);
  EXPECT_EQ(train(text_run(text), run), RunEnd::finished_before) << "what has ended needs no data";
  folder.write("text", before + "c");
  EXPECT_NE(error_of([&] { train(text_run(text), run); }).find("have changed"), std::string::npos);
}

TEST(Trainer, ARunOfAnEarlierVersionBeginsToKeepWhatItsDataAre) {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", std::string(6000, 'a')), run = folder / "run";
  train(text_run(text), run);
  const std::string record = test::read_file(RunView(run).data_path());
  reopen(run);
  fs::remove(RunView(run).data_path());
  EXPECT_EQ(train(text_run(text), run), RunEnd::finished);
  EXPECT_EQ(test::read_file(RunView(run).data_path()), record);
  test::write_file(RunView(run).data_path(), "{");
  EXPECT_NE(error_of([&] { train(text_run(text), run); }).find("is damaged"), std::string::npos);
}

TEST(Trainer, ALogThatWasEmptiedOrRemovedIsNotGoneOnWith) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  train(tiny_run(), run);
  const std::string log = test::read_file(RunView(run).metrics_path());
  reopen(run);
  const auto refused = [&](const std::string& words) {
    const std::string message = error_of([&] { train(tiny_run(), run); });
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  test::write_file(RunView(run).metrics_path(), "");
  refused("has no record of step 1, though the checkpoint is of step 4");
  EXPECT_EQ(test::read_file(RunView(run).metrics_path()), "");
  test::write_file(RunView(run).metrics_path(), log.substr(0, log.find('\n') + 1));
  refused("has no record of step 2");
  fs::remove(RunView(run).metrics_path());
  refused("has no record of step 1");
  EXPECT_FALSE(fs::exists(RunView(run).metrics_path()));
  test::write_file(RunView(run).metrics_path(), log);
  EXPECT_EQ(train(tiny_run(), run), RunEnd::finished);
}

TEST(Trainer, AFlippedDigitInTheLogIsNoticed) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  train(tiny_run(), run);
  std::string log = test::read_file(RunView(run).metrics_path());
  const std::size_t digit = log.find("\"loss\":") + 10;
  log[digit] = log[digit] == '7' ? '8' : '7';
  test::write_file(RunView(run).metrics_path(), log);
  EXPECT_NE(error_of([&] { train(tiny_run(), run); }).find("says that it was when the run ended"), std::string::npos);
  reopen(run);
  EXPECT_NE(error_of([&] { train(tiny_run(), run); }).find("is not what was written to it"), std::string::npos);
}

TEST(Trainer, ASchemeThatIsMissingIsKeptAgainAndADamagedOneIsNamed) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  train(tiny_run(), run);
  const fs::path path = RunView(run).scheme_path();
  const std::string scheme = test::read_file(path);
  reopen(run);
  fs::remove(path);
  train(tiny_run(), run);
  EXPECT_EQ(test::read_file(path), scheme);
  reopen(run);
  test::write_file(path, "sublayer = \"");
  const std::string message = error_of([&] { train(tiny_run(), run); });
  EXPECT_NE(message.find(path.string()), std::string::npos) << message;
}

TEST(Trainer, RecordedStepsAreThoseOfTheLog) {
  TrainConfig train;
  train.steps = 25;
  train.log_every = 10;
  using Steps = std::vector<std::int64_t>;
  EXPECT_EQ(recorded_steps(train, 0, -1), Steps());
  EXPECT_EQ(recorded_steps(train, 0, 9), Steps{1});
  EXPECT_EQ(recorded_steps(train, 0, 25), (Steps{1, 10, 20, 25}));
  EXPECT_EQ(recorded_steps(train, 10, 24), Steps{20});
  train.log_every = 1;
  EXPECT_EQ(recorded_steps(train, 0, 3), (Steps{1, 2, 3}));
}

}  // namespace
}  // namespace norma
