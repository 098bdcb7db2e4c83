// norma sweep as a process: results, kills, a full disk, mistakes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <random>

#include "cli/process.h"
#include "norma/lab/sweep.h"
#include "norma/store/run_directory.h"

namespace norma {
namespace {

using test::Folder;
using test::Outcome;
using test::Process;
namespace fs = std::filesystem;

std::vector<std::string> small_sweep(const std::string& out, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"sweep",
                                        "--out",
                                        out,
                                        "--quiet",
                                        "--model.layers=2",
                                        "--model.width=16",
                                        "--model.heads=2",
                                        "--model.batch=4",
                                        "--model.time=12",
                                        "--model.scheme=[pre,post]",
                                        "--train.lr=[1e-3,1e5]",
                                        "--train.clip=0",
                                        "--train.steps=150",
                                        "--train.checkpoint_every=7",
                                        "--train.evaluate_every=50",
                                        "--train.threads=1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// All losses of all runs, by the name of the run.
std::map<std::string, std::vector<double>> losses_in(const std::string& sweep) {
  std::map<std::string, std::vector<double>> all;
  for (const fs::directory_entry& run : fs::directory_iterator(fs::path(sweep) / "runs")) {
    const RunOutcome outcome = read_outcome({}, run.path());
    std::vector<double>& values = all[run.path().filename().string()];
    values = outcome.curve.loss;
    values.insert(values.end(), outcome.evaluations.loss.begin(), outcome.evaluations.loss.end());
    values.push_back(static_cast<double>(outcome.diverged_at_step));
  }
  return all;
}

TEST(SweepProcess, TwoByTwoRunsAndPrintsItsResults) {
  const Folder folder("sweep");
  const Outcome outcome = test::run(folder, small_sweep(folder / "s"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("pre"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("post"), std::string::npos);
  int runs = 0;
  for (const fs::directory_entry& run : fs::directory_iterator(folder / "s/runs")) {
    ++runs;
    EXPECT_TRUE(RunView(run.path()).is_done());
    EXPECT_EQ(RunView(run.path()).checkpoint_steps().size(), 1u);
  }
  EXPECT_EQ(runs, 4);
  EXPECT_TRUE(fs::exists(folder / "s/index.sqlite"));
}

}  // namespace
}  // namespace norma
