// What goes wrong on a card: memory that is not there, a card that is lost in the middle of a run; and sessions that
// come and go beside each other.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cuda/agreement.h"
#include "cuda/trap.h"
#include "norma/store/run_directory.h"
#include "norma/train/trainer.h"
#include "temporary_folder.h"
#include "train/cohort_check.h"

namespace norma {
namespace {

using test::make_cohort;
using test::small_run;
using test::TemporaryFolder;

constexpr const char* kDirectory = "NORMA_LOST_RUN";

RunConfig on_gpu(const std::string& changes = "") { return small_run("train.device = \"cuda\"\n" + changes); }

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Nothing is taken before it is refused.
TEST(CudaFaults, WhatDoesNotFitIsRefusedWithAWayOut) {
  SKIP_WITHOUT_GPU();
  make_cohort(on_gpu()).train_step();
  const std::string batch = message_of([] { make_cohort(on_gpu("model.batch = 100000\nmodel.time = 4096")); });
  EXPECT_NE(batch.find("but the GPU has "), std::string::npos) << batch;
  EXPECT_NE(batch.find("train.keep=lean"), std::string::npos) << batch;
  const RunConfig config = on_gpu();
  const TrainingStep step = build_training_step(resolve_config(config, *open_data(config)).model, step_options(config));
  // Other processes may take memory meanwhile, but not every time.
  bool untouched = false;
  for (int attempt = 0; attempt < 50 && !untouched; ++attempt) {
    const std::int64_t free = cuda::memory().free_bytes;
    const std::string members = message_of([&] { make_session(step.plan, {.members = 10'000'000}); });
    ASSERT_NE(members.find("fewer members"), std::string::npos) << members;
    untouched = cuda::memory().free_bytes >= free - (std::int64_t{64} << 20);
  }
  EXPECT_TRUE(untouched);
  make_cohort(on_gpu()).train_step();  // and the card is as it was
}

RunConfig short_run() { return on_gpu("train.steps = 60\ntrain.checkpoint_every = 20\ntrain.dropout = 0.1"); }

RunEnd train_to_end(const std::filesystem::path& directory, RunObserver&& observer = RunObserver()) {
  const std::atomic<bool> stop{false};
  return run_training({.config = short_run(), .directory = directory}, observer, stop);
}

// In a process of its own: nothing on the card works in this one afterwards.
TEST(CudaFaults, DISABLED_LosesTheCard) {
  const char* const directory = std::getenv(kDirectory);
  if (directory == nullptr) GTEST_SKIP() << "another test starts this one";
  struct Loses final : RunObserver {
    void stepped(const Cohort& cohort, double) override {
      if (cohort.step() == 30) test::lose_gpu();
    }
  };
  const std::string message = message_of([&] { train_to_end(directory, Loses()); });
  std::ofstream(std::string(directory) + ".message") << message;
  _exit(message.empty() ? 1 : 2);
}

TEST(CudaFaults, ALostCardLeavesARunThatGoesOnWithTheSameBits) {
  SKIP_WITHOUT_GPU();
  const TemporaryFolder folder;
  const std::string lost = (folder.path() / "lost").string();
  const pid_t child = fork();
  if (child == 0) {
    setenv(kDirectory, lost.c_str(), 1);
    for (const char* const shard : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) unsetenv(shard);  // it is one of all
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    execl("/proc/self/exe", "cuda_test", "--gtest_filter=CudaFaults.DISABLED_LosesTheCard",
          "--gtest_also_run_disabled_tests", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << "it crashed";
  EXPECT_EQ(WEXITSTATUS(status), 2);
  const std::string message = test::read_file(lost + ".message");
  EXPECT_NE(message.find("the GPU stopped working"), std::string::npos) << message;
  EXPECT_NE(message.find("goes on from the last checkpoint"), std::string::npos) << message;
  const RunView run(lost);
  EXPECT_FALSE(run.is_done());
  EXPECT_EQ(run.checkpoint_steps().back(), 20);
  EXPECT_EQ(train_to_end(lost), RunEnd::finished);
  train_to_end(folder.path() / "whole");
  EXPECT_TRUE(test::read_file(run.checkpoint_path(60)) ==
              test::read_file(RunView(folder.path() / "whole").checkpoint_path(60)));
}

// Sessions are made, recorded, read and given back while others of the same process do the same.
TEST(CudaFaults, CohortsTrainBesideEachOther) {
  SKIP_WITHOUT_GPU();
  const auto train = [](std::int64_t layers) {
    Cohort cohort = make_cohort(on_gpu(fmt::format("members.seed = [1, 2, 3]\nmodel.layers = {}", layers)));
    for (int step = 0; step < 12; ++step) {
      cohort.train_step(step % 4 == 0 ? Watching::yes : Watching::no);
      if (step % 6 == 5) cohort.evaluate();
    }
    return std::pair(test::weights(cohort, 2), cohort.member(1).loss);
  };
  const auto alone = train(3);
  std::atomic<int> different = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 4; ++round) {
        if (thread % 2 == 0) {
          different += train(3) == alone ? 0 : 1;
        } else {
          train(2 + thread);
        }
      }
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(different, 0);
}

class CudaTrainedBits : public testing::TestWithParam<const char*> {};

TEST_P(CudaTrainedBits, AreTheSameInEveryRun) {
  SKIP_WITHOUT_GPU();
  for (const std::string family : {"decoder", "encoder", "encoder_decoder"}) {
    for (const std::string scheme : {"pre", "post", "deepnorm", "realformer"}) {
      const RunConfig config = on_gpu(
          fmt::format("model.family = \"{}\"\nmodel.scheme = \"{}\"\ntrain.precision = \"{}\"\nmembers.seed = [1, 2]\n"
                      "train.dropout = 0.1",
                      family, scheme, GetParam()));
      std::vector<std::vector<std::byte>> found[2];
      for (auto& run : found) {
        Cohort cohort = make_cohort(config);
        for (int step = 0; step < 20; ++step) cohort.train_step(Watching::no);
        for (const int member : {0, 1}) {
          for (const std::string& name : cohort.session().plan().slot_names(Role::parameter)) {
            const Handle tensor = cohort.session().handle(name);
            cohort.session().read(tensor, member, run.emplace_back(tensor.bytes()));
          }
        }
      }
      EXPECT_TRUE(found[0] == found[1]) << family << " " << scheme;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(In, CudaTrainedBits, testing::Values("f32", "tf32", "bf16"),
                         [](const auto& chosen) { return std::string(chosen.param); });

}  // namespace
}  // namespace norma
