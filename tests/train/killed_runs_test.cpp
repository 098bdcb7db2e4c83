// Runs that end in the middle, on every device: killed, two beside each other on one card, and one whose card is lost.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "device/gpu_failure.h"
#include "norma/backends/device.h"
#include "norma/store/run_directory.h"
#include "norma/train/trainer.h"
#include "temporary_folder.h"

namespace norma {
namespace {

using test::TemporaryFolder;
constexpr const char *kDirectory = "NORMA_KILLED_RUN", *kDevice = "NORMA_KILLED_RUN_DEVICE";

RunConfig short_run(const std::string& device) {
  RunConfig config;
  for (const char* setting : {"model.layers=2", "model.width=16", "model.heads=2", "model.batch=4", "model.time=16",
                              "train.steps=400", "train.checkpoint_every=20", "train.log_every=10", "train.threads=1",
                              "train.tensorboard=false", "train.evaluate_every=100", "train.dropout=0.1"})
    override_config(config, setting);
  config.train.device = parse_device(device);
  return config;
}

RunEnd train_to_end(const RunConfig& config, const std::string& directory, RunObserver&& observer = RunObserver()) {
  const std::atomic<bool> stop{false};
  return run_training({.config = config, .directory = directory}, observer, stop);
}

std::string last_weights(const std::string& directory) {
  return test::read_file(RunView(directory).checkpoint_path(400));
}

// A process of its own: this program again, with the one test that trains. CUDA does not survive a fork alone.
pid_t start_training(const std::string& directory, const std::string& device) {
  const pid_t child = fork();
  if (child != 0) return child;
  setenv(kDirectory, directory.c_str(), 1);
  setenv(kDevice, device.c_str(), 1);
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  execl("/proc/self/exe", "train_test", "--gtest_filter=KilledRuns.DISABLED_TrainsOnce",
        "--gtest_also_run_disabled_tests", nullptr);
  _exit(127);
}

bool ended_well(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(KilledRuns, DISABLED_TrainsOnce) {
  const char *const directory = std::getenv(kDirectory), *const device = std::getenv(kDevice);
  if (directory == nullptr || device == nullptr) GTEST_SKIP() << "others start this one";
  train_to_end(short_run(device), directory);
}

class KilledOnDevice : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string problem = why_not(parse_device(GetParam()));
    if (!problem.empty()) GTEST_SKIP() << problem;
  }
  TemporaryFolder folder_;
};

TEST_P(KilledOnDevice, GoOnWithTheSameBits) {
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(ended_well(start_training(folder_ / "whole", GetParam())));
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begun;
  std::mt19937 random(7);
  int kills = 0;
  for (bool done = false; !done && kills < 400; ++kills) {
    const pid_t child = start_training(folder_ / "killed", GetParam());
    // Longer and longer: a process must get as far as a checkpoint, also where starting takes most of the time.
    std::this_thread::sleep_for(whole * std::uniform_real_distribution<double>(0.1, 0.5 + 0.02 * kills)(random));
    kill(child, SIGKILL);
    ended_well(child);
    const RunView run(folder_ / "killed");
    done = run.exists() && run.is_done();
  }
  EXPECT_GT(kills, 1) << "it was never killed before its end";
  ASSERT_TRUE(ended_well(start_training(folder_ / "killed", GetParam()))) << "a run that has ended is left as it is";
  EXPECT_TRUE(last_weights(folder_ / "whole") == last_weights(folder_ / "killed")) << "after " << kills << " kills";
}

TEST_P(KilledOnDevice, TwoProcessesShareIt) {
  const pid_t one = start_training(folder_ / "one", GetParam()), two = start_training(folder_ / "two", GetParam());
  EXPECT_TRUE(ended_well(one));
  EXPECT_TRUE(ended_well(two));
  EXPECT_TRUE(last_weights(folder_ / "one") == last_weights(folder_ / "two"));
}

INSTANTIATE_TEST_SUITE_P(Devices, KilledOnDevice, testing::Values("cpu", "cuda"),
                         [](const auto& each) { return std::string(each.param); });

// The card is gone at step 130: the run ends with the error, and goes on from the last checkpoint.
TEST(KilledRuns, ALostCardLeavesARunThatGoesOn) {
  struct Loses final : RunObserver {
    void stepped(const Cohort& cohort, double) override {
      if (cohort.step() == 130) fail("{}", gpu_failure(719, "running a step", "cudaErrorLaunchFailure", "unspecified"));
    }
  };
  struct Resumed final : RunObserver {
    void started(const Cohort& cohort, const Source&) override { *step = cohort.step(); }
    std::int64_t* step = nullptr;
  };
  const TemporaryFolder folder;
  const RunConfig config = short_run("cpu");
  EXPECT_THROW(train_to_end(config, folder / "run", Loses()), Error);
  EXPECT_FALSE(RunView(folder / "run").is_done());
  std::int64_t from = -1;
  Resumed resumed;
  resumed.step = &from;
  EXPECT_EQ(train_to_end(config, folder / "run", std::move(resumed)), RunEnd::finished);
  EXPECT_EQ(from, 120);
  train_to_end(config, folder / "whole");
  EXPECT_TRUE(last_weights(folder / "whole") == last_weights(folder / "run"));
}

}  // namespace
}  // namespace norma
