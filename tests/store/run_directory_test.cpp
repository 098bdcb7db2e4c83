// A run keeps its directory to itself, is never overwritten, and can always be taken up again.
#include "norma/store/run_directory.h"

#include <unistd.h>

#include <algorithm>

#include "norma/store/atomic_file.h"
#include "store/store_check.h"

namespace norma {
namespace {

using test::error_of;
using test::files_in;
using test::TemporaryFolder;
using Steps = std::vector<std::int64_t>;

const std::string kConfig = "seed = 1\n";

void save(RunDirectory& run, std::int64_t step, Retention retention = {}, std::size_t size = 100) {
  const std::vector<float> weights(size, static_cast<float>(step));
  const std::vector<TensorData> tensors = {tensor_data<float>("w", {static_cast<std::int64_t>(size)}, weights)};
  run.save_checkpoint(step, tensors, {{"note", "n"}}, retention);
}

void flip_last_bit(const test::fs::path& path) {
  std::string content = test::read_file(path);
  content.back() = static_cast<char>(content.back() ^ 1);
  test::write_file(path, content);
}

TEST(RunDirectory, HoldsWhatARunIs) {
  const TemporaryFolder directory;
  const test::fs::path path = directory / "runs/a";
  {
    RunDirectory run = RunDirectory::create(path, kConfig, "{}\n", "sublayer = 'x'\n");
    EXPECT_EQ(run.config(), kConfig);
    EXPECT_EQ(run.scheme(), "sublayer = 'x'\n");
    EXPECT_EQ(run.environment(), "{}\n");
    EXPECT_FALSE(run.newest_checkpoint().newest.has_value());
    MetricsLog metrics = run.open_metrics(-1);
    metrics.append(0, std::vector<Metric>{{"loss", 1.5}});
    run.open_events(-1).add_scalars(0, std::vector<EventScalar>{{"loss", 1.5f}});
    save(run, 1234);
    EXPECT_NE(error_of([&] { static_cast<void>(run.result()); }), "");
    run.finish("{\"loss\":1.5}\n");
  }
  const RunView run(path);
  EXPECT_TRUE(run.is_done());
  EXPECT_EQ(run.result(), "{\"loss\":1.5}\n");
  EXPECT_EQ(read_metrics(run.metrics_path()).size(), 1u);
  EXPECT_TRUE(test::fs::exists(path / "checkpoints/step-00001234.safetensors"));
  const CheckpointSearch search = run.newest_checkpoint();
  ASSERT_TRUE(search.newest);
  EXPECT_EQ(search.newest->step, 1234);
  EXPECT_EQ(search.newest->file.view<float>("w")[99], 1234.0f);
  EXPECT_EQ(search.newest->file.metadata().at("norma.step"), "1234");
  EXPECT_EQ(search.newest->file.metadata().at("note"), "n");
}

TEST(RunDirectory, NeverOverwritesARun) {
  const TemporaryFolder directory;
  { RunDirectory::create(directory / "a", kConfig, "{}"); }
  const std::string again = error_of([&] { RunDirectory::create(directory / "a", "other", "{}"); });
  EXPECT_NE(again.find("already holds a run"), std::string::npos) << again;
  EXPECT_EQ(RunView(directory / "a").config(), kConfig);

  test::fs::create_directory(directory / "b");
  test::write_file(directory / "b/thesis.tex", "");
  const std::string foreign = error_of([&] { RunDirectory::create(directory / "b", kConfig, "{}"); });
  EXPECT_NE(foreign.find("it holds 'thesis.tex'"), std::string::npos) << foreign;
  EXPECT_EQ(files_in(directory / "b"), 1) << "nothing is left in a directory that is not ours";

  test::fs::create_directories(directory / "c/checkpoints");
  test::write_file(directory / "c/checkpoints/step-00000001.safetensors", "");
  EXPECT_NE(error_of([&] { RunDirectory::create(directory / "c", kConfig, "{}"); }).find("holds checkpoints"),
            std::string::npos);
  test::write_file(directory / "file", "");
  EXPECT_NE(error_of([&] { RunDirectory::create(directory / "file", kConfig, "{}"); }).find("cannot create"),
            std::string::npos);
}

TEST(RunDirectory, ABeginningThatWasKilledCanBeginAgain) {
  const TemporaryFolder directory;
  { RunDirectory::create(directory / "a", kConfig, "{}", "sublayer = 'x'\n"); }
  test::fs::remove(directory / "a/config.toml");
  test::write_file(directory / "a/.config.toml.17-0.norma-tmp", "se");
  EXPECT_NE(error_of([&] { RunDirectory::resume(directory / "a"); }).find("holds no run"), std::string::npos);
  EXPECT_EQ(RunDirectory::create(directory / "a", kConfig, "{}").scheme(), "") << "not that of the first beginning";
  EXPECT_FALSE(test::fs::exists(directory / "a/.config.toml.17-0.norma-tmp"));
}

TEST(RunDirectory, ResumeSaysWhyNot) {
  const TemporaryFolder directory;
  EXPECT_NE(error_of([&] { RunDirectory::resume(directory / "none"); }).find("holds no run"), std::string::npos);
  EXPECT_NE(error_of([&] { static_cast<void>(RunView(directory / "none").config()); }).find("holds no run"),
            std::string::npos);
  RunDirectory::create(directory / "a", kConfig, "{}").finish("{}");
  const std::string message = error_of([&] { RunDirectory::resume(directory / "a"); });
  EXPECT_NE(message.find("already finished (DONE)"), std::string::npos) << message;
}

TEST(RunDirectory, ItsEndKnowsWhatItEndedWith) {
  const TemporaryFolder directory;
  {
    RunDirectory run = RunDirectory::create(directory / "a", kConfig, "{}");
    MetricsLog metrics = run.open_metrics(-1);
    metrics.append(1, std::vector<Metric>{{"loss", 1.5}});
    metrics.seal();
    run.finish("{\"loss\":1.5}\n");
  }
  const RunView run(directory / "a");
  run.verify_end();
  for (const test::fs::path& path : {run.result_path(), run.metrics_path()}) {
    const std::string whole = test::read_file(path);
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      std::string damaged = whole;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      test::write_file(path, damaged);
      ASSERT_NE(error_of([&] { run.verify_end(); }).find(path.string() + "' is damaged"), std::string::npos) << bit;
    }
    test::fs::remove(path);
    EXPECT_NE(error_of([&] { run.verify_end(); }), "");
    test::write_file(path, whole);
  }
  run.verify_end();
  test::write_file(directory / "a/DONE", "");  // of an earlier version
  test::write_file(run.result_path(), "{}");
  run.verify_end();
  reopen_run(Folder(directory / "a"));
  RunDirectory::resume(directory / "a").finish("{}");
}

TEST(RunDirectory, ARunWithoutItsConfigurationIsNotBegunAnew) {
  const TemporaryFolder directory;
  { RunDirectory::create(directory / "a", kConfig, "{}").open_metrics(-1); }
  test::fs::remove(directory / "a/config.toml");
  const std::string message = error_of([&] { RunDirectory::create(directory / "a", kConfig, "{}"); });
  EXPECT_NE(message.find("it holds 'metrics.jsonl' of a run whose config.toml is missing"), std::string::npos)
      << message;
}

TEST(RunDirectory, ResumeRemovesLeftovers) {
  const TemporaryFolder directory;
  { RunDirectory::create(directory / "a", kConfig, "{}"); }
  const test::fs::path one = directory / "a/.result.json.9-9.norma-tmp";
  const test::fs::path two = directory / "a/checkpoints/.step-00000001.safetensors.9-9.norma-tmp";
  test::write_file(one, "half");
  test::write_file(two, "half");
  EXPECT_TRUE(RunView(directory / "a").checkpoint_steps().empty());
  RunDirectory::resume(directory / "a");
  EXPECT_FALSE(test::fs::exists(one));
  EXPECT_FALSE(test::fs::exists(two));
}

TEST(RunDirectory, OneWriterAtATime) {
  const TemporaryFolder directory;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      const RunDirectory run = RunDirectory::create(directory / "a", kConfig, "{}");
      [[maybe_unused]] const ssize_t told = ::write(ready[1], "x", 1);
      ::pause();
    } catch (...) {
    }
    ::_exit(3);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const std::string message = error_of([&] { RunDirectory::resume(directory / "a"); });
  EXPECT_NE(message.find("is in use by process " + std::to_string(child)), std::string::npos) << message;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  const RunDirectory run = RunDirectory::resume(directory / "a");  // the lock died with its holder
  EXPECT_NE(error_of([&] { RunDirectory::resume(directory / "a"); }).find(std::to_string(::getpid())),
            std::string::npos);
  EXPECT_EQ(RunView(directory / "a").config(), kConfig) << "reading needs no lock";
}

TEST(RunDirectory, RetentionKeepsTheLastAndTheLandmarks) {
  const TemporaryFolder directory;
  RunDirectory run = RunDirectory::create(directory / "a", kConfig, "{}");
  for (std::int64_t step = 10; step <= 120; step += 10) save(run, step, {.keep_last = 3, .keep_every = 40});
  EXPECT_EQ(run.checkpoint_steps(), (Steps{40, 80, 100, 110, 120}));
  save(run, 130, {.keep_last = 1});
  EXPECT_EQ(run.checkpoint_steps(), (Steps{130}));
  save(run, 140, {.keep_last = 0});
  EXPECT_EQ(run.checkpoint_steps(), (Steps{140})) << "the newest always stays";
  test::write_file(run.checkpoints_path() / "mine.safetensors", "");
  test::write_file(run.checkpoints_path() / "step-7.safetensors", "");
  save(run, 123'456'789'012, {.keep_last = 1});
  EXPECT_EQ(run.checkpoint_steps(), (Steps{123'456'789'012}));
  EXPECT_EQ(files_in(run.checkpoints_path()), 3) << "files of others stay";
  EXPECT_NE(error_of([&] { save(run, -1); }), "");
}

TEST(RunDirectory, ADamagedCheckpointIsPassedOver) {
  const TemporaryFolder directory;
  RunDirectory run = RunDirectory::create(directory / "a", kConfig, "{}");
  for (const int step : {10, 20, 30, 40}) save(run, step, {.keep_last = 9});
  flip_last_bit(run.checkpoint_path(40));
  test::fs::copy_file(run.checkpoint_path(20), run.checkpoint_path(30), test::fs::copy_options::overwrite_existing);
  CheckpointSearch search = run.newest_checkpoint();
  ASSERT_TRUE(search.newest);
  EXPECT_EQ(search.newest->step, 20);
  EXPECT_EQ(search.newest->file.view<float>("w")[0], 20.0f);
  ASSERT_EQ(search.warnings.size(), 2u);
  EXPECT_NE(search.warnings[0].find("step-00000040.safetensors' is damaged"), std::string::npos) << search.warnings[0];
  EXPECT_NE(search.warnings[1].find("not the checkpoint of step 30: it says 20"), std::string::npos)
      << search.warnings[1];

  // The run goes on from step 20: what was written of later steps must not displace what is written now.
  save(run, 25, {.keep_last = 1});
  EXPECT_EQ(run.checkpoint_steps(), Steps{25});
  EXPECT_EQ(run.newest_checkpoint().newest->step, 25);
  test::write_file(run.checkpoint_path(25), "");
  search = run.newest_checkpoint();
  EXPECT_FALSE(search.newest);
  EXPECT_EQ(search.warnings.size(), 1u);
}

TEST(RunDirectory, ACheckpointInPieces) {
  const TemporaryFolder directory;
  RunDirectory run = RunDirectory::create(directory / "a", kConfig, "{}");
  save(run, 1);
  const std::vector<float> half(50, 2.0f);
  {
    SafetensorsWriter abandoned = run.begin_checkpoint(2, {{"w", ElementType::f32, {100}}});
    abandoned.write("w", std::as_bytes(std::span(half)));
  }
  EXPECT_EQ(run.checkpoint_steps(), Steps{1});
  SafetensorsWriter writer = run.begin_checkpoint(3, {{"w", ElementType::f32, {100}}});
  for (int i = 0; i < 2; ++i) writer.write("w", std::as_bytes(std::span(half)));
  writer.commit();
  run.retire_checkpoints(3, {.keep_last = 1});
  EXPECT_EQ(run.checkpoint_steps(), Steps{3});
  EXPECT_EQ(run.newest_checkpoint().newest->step, 3);
  EXPECT_EQ(files_in(run.checkpoints_path()), 1);
}

void expect_first_checkpoint_alone(const RunView& run) {
  const CheckpointSearch search = run.newest_checkpoint();
  ASSERT_TRUE(search.newest);
  EXPECT_EQ(search.newest->step, 1);
  EXPECT_TRUE(search.warnings.empty());
  EXPECT_EQ(files_in(run.checkpoints_path()), 1) << "no half file is left";
}

TEST(RunDirectory, ACheckpointThatCannotBeWrittenKeepsThePreviousOne) {
  const TemporaryFolder directory;
  RunDirectory run = RunDirectory::create(directory / "a", kConfig, "{}");
  save(run, 1);
  std::string message;
  {
    const test::FileSizeLimit limit(100'000);
    message = error_of([&] { save(run, 2, {.keep_last = 1}, 1'000'000); });
  }
  EXPECT_NE(message.find("step-00000002.safetensors' after 100000 bytes: File too large"), std::string::npos)
      << message;
  expect_first_checkpoint_alone(run);
}

TEST(RunDirectory, AFullDiskKeepsThePreviousCheckpoint) {
  const TemporaryFolder directory;
  const test::SmallDisk disk(directory);
  if (!disk.mounted()) GTEST_SKIP() << "a small file system cannot be mounted here";
  RunDirectory run = RunDirectory::create(directory / "a", kConfig, "{}");
  save(run, 1);
  const std::string message = error_of([&] { save(run, 2, {.keep_last = 1}, 1'000'000); });
  EXPECT_NE(message.find("No space left on device"), std::string::npos) << message;
  expect_first_checkpoint_alone(run);
  save(run, 3, {.keep_last = 1});
  EXPECT_EQ(run.newest_checkpoint().newest->step, 3);
}

}  // namespace
}  // namespace norma
