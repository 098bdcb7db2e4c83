// Threads, memory, file sizes and files that run out: a clear error, and a run that goes on when they are back.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "cli/process.h"
#include "places.h"
#include "sanitized.h"

namespace norma {
namespace {

using test::Ended;
using test::Process;
using test::TemporaryFolder;

// `limits; norma <arguments>` in a shell of its own.
Ended limited(const TemporaryFolder& folder, const std::string& limits, const std::string& arguments) {
  const std::string out = folder / "limited.out", err = folder / "limited.err";
  const std::string command =
      limits + "; exec " + test::kProgram + " " + arguments + " > '" + out + "' 2> '" + err + "'";
  const int status = std::system(command.c_str());
  Ended outcome{.out = test::read_file(out), .err = test::read_file(err)};
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  return outcome;
}

std::string limited_run(const std::string& out, const std::string& more) {
  return "train --quiet --model.layers=2 --model.width=16 --model.heads=2 --model.batch=4 --model.time=12 --out '" +
         out + "' " + more;
}

TEST(Resources, ThreadsThatCannotBeStartedAreAnError) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers need address space of their own";
  const TemporaryFolder folder;
  for (const char* kib : {"100000", "160000", "200000", "230000"}) {
    const Ended outcome = limited(folder, std::string("ulimit -v ") + kib,
                                  limited_run(folder / "run", "--train.steps=2 --train.threads=64"));
    EXPECT_EQ(outcome.code, 2) << kib << ": " << outcome.signal << outcome.err;
    // Where there is hardly room for the program itself, memory is what runs out first.
    const bool said = outcome.err.find("ask for fewer") != std::string::npos ||
                      outcome.err.find("fewer threads take less") != std::string::npos;
    EXPECT_TRUE(said) << outcome.err;
  }
  // The limit of processes does not hold for everybody: an error or a run, but no crash.
  const Ended processes = limited(folder, "ulimit -p 4 2>/dev/null || ulimit -u 4",
                                  limited_run(folder / "run", "--train.steps=2 --train.threads=32"));
  EXPECT_TRUE(processes.code == 0 || processes.err.find("ask for fewer") != std::string::npos)
      << processes.code << processes.signal << processes.err;
}

TEST(Resources, MemoryThatIsNotThereIsAnError) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers need address space of their own";
  const TemporaryFolder folder;
  int refused = 0;
  for (int kib = 58000; kib < 120000; kib += 4000) {
    const Ended outcome =
        limited(folder, "ulimit -v " + std::to_string(kib),
                limited_run(folder / ("run" + std::to_string(kib)), "--train.steps=2 --train.threads=1"));
    if (outcome.code == 127) continue;  // not enough to load its libraries
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 2) << kib << ": " << outcome.code << outcome.signal << outcome.err;
    if (outcome.code == 0) continue;
    ++refused;
    EXPECT_TRUE(outcome.err.find("memory") != std::string::npos ||
                outcome.err.find("this machine has") != std::string::npos)
        << outcome.err;
  }
  EXPECT_GT(refused, 0);
}

TEST(Resources, AFileThatMayNotGrowIsAnErrorAndTheRunGoesOn) {
  const TemporaryFolder folder;
  const std::string run = limited_run(folder / "run", "--train.steps=20 --train.checkpoint_every=5 --model.width=32");
  const Ended stopped = limited(folder, "ulimit -f 8", run);
  EXPECT_EQ(stopped.code, 2) << stopped.signal << stopped.err;
  EXPECT_NE(stopped.err.find("File too large"), std::string::npos) << stopped.err;
  EXPECT_EQ(limited(folder, ":", run).code, 0) << "with the limit gone";
}

TEST(Resources, ACorpusThatShrinksIsAnErrorAndTheRunGoesOn) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 60000; ++i) text += "sentence number " + std::to_string(i) + " of many\n";
  const std::string corpus = folder.write("corpus.txt", text);
  const auto arguments = test::small_model("train", folder / "run",
                                           {"--data.task=text", "--data.path=" + corpus, "--train.steps=400",
                                            "--train.checkpoint_every=20", "--train.threads=1"});
  Process process(folder, arguments);
  const std::filesystem::path checkpoints = folder / "run/checkpoints";
  for (int i = 0; i < 2000 && (!std::filesystem::exists(checkpoints) || std::filesystem::is_empty(checkpoints)); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::filesystem::resize_file(corpus, 4096);
  const Ended outcome = process.wait();
  ASSERT_EQ(outcome.code, 2) << outcome.signal << outcome.err;
  EXPECT_NE(outcome.err.find("corpus.txt' became shorter while it was read"), std::string::npos) << outcome.err;
  test::write_file(corpus, text);
  const Ended resumed = test::run(folder, arguments);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}

}  // namespace
}  // namespace norma
