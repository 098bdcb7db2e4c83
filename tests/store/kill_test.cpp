// A process that trains and saves is killed at random moments, over and over: its run stays whole.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "norma/store/run_directory.h"
#include "store/store_check.h"

namespace norma {
namespace {

using test::TemporaryFolder;

constexpr int kKills = 60, kSteps = 20;  // at least
constexpr std::size_t kWeightCount = 100'000;

float weight(std::int64_t step, std::size_t index) {
  return static_cast<float>(step * 31 + static_cast<int>(index % 97));
}

// What a trainer does: begins or takes up the run, and from there logs every step and saves it.
void train(const test::fs::path& path) {
  RunDirectory run = RunView(path).exists() ? RunDirectory::resume(path) : RunDirectory::create(path, "seed = 1", "{}");
  const CheckpointSearch search = run.newest_checkpoint();
  std::int64_t step = search.newest ? search.newest->step : -1;
  MetricsLog metrics = run.open_metrics(step, {.records = 1});
  std::vector<float> weights(kWeightCount);
  for (;;) {
    ++step;
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = weight(step, i);
    metrics.append(step, std::vector<Metric>{{"loss", 1.0 / static_cast<double>(step + 1)}});
    metrics.sync();
    const std::vector<TensorData> tensors = {
        tensor_data<float>("w", {static_cast<std::int64_t>(kWeightCount)}, weights)};
    run.save_checkpoint(step, tensors);
  }
}

TEST(Kill, ARunSurvivesItAtAnyMoment) {
  const TemporaryFolder directory;
  const test::fs::path path = directory / "run";
  std::mt19937 random(static_cast<unsigned>(::getpid()));
  std::int64_t last = -1;
  int leftovers = 0;
  int round = 0;
  for (; round < kKills || (last < kSteps && round < 10 * kKills); ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        train(path);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      ::_exit(3);
    }
    // Longer and longer, so that a slow disk gets somewhere too.
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % (30'000 + 1000 * round)));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the trainer stopped by itself in round " << round;

    const RunView run(path);
    if (!run.exists()) continue;  // killed before the run began
    ASSERT_EQ(run.config(), "seed = 1");
    ASSERT_EQ(run.environment(), "{}");
    const CheckpointSearch search = run.newest_checkpoint();
    ASSERT_TRUE(search.warnings.empty()) << "round " << round << ": " << search.warnings[0];
    if (!search.newest) {
      ASSERT_EQ(last, -1) << "the checkpoint of step " << last << " is gone";
      continue;
    }
    ASSERT_GE(search.newest->step, last) << "round " << round;
    last = search.newest->step;
    const std::span<const float> weights = search.newest->file.view<float>("w");
    ASSERT_EQ(weights.size(), kWeightCount);
    for (std::size_t i = 0; i < weights.size(); ++i) ASSERT_EQ(weights[i], weight(last, i)) << i;
    const std::vector<MetricRecord> records = read_metrics(run.metrics_path());
    ASSERT_GE(records.size(), static_cast<std::size_t>(last) + 1) << "a step was saved but not logged";
    for (std::size_t i = 0; i < records.size(); ++i) ASSERT_EQ(records[i].step, static_cast<std::int64_t>(i));
    leftovers += test::files_in(run.checkpoints_path()) > static_cast<int>(run.checkpoint_steps().size());
  }
  EXPECT_GE(last, kSteps) << "the trainer never got far enough to be killed at work";
  std::printf("%d kills, last step %d, %d of them in the middle of a checkpoint\n", round, static_cast<int>(last),
              leftovers);
}

}  // namespace
}  // namespace norma
