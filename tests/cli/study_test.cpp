// norma study as a process: a small study from end to end, and mistakes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/process.h"

namespace norma {
namespace {

using test::Outcome;
using test::TemporaryFolder;

std::vector<std::string> small_study(const std::string& out, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"study",   "--out",    out,    "--quiet",         "--depths",
                                        "2,4",     "--layers", "2",    "--width",         "16",
                                        "--steps", "40",       "--lr", "1e-3,1e-2",       "--warmup",
                                        "0",       "--seeds",  "1,2",  "--model.batch=4", "--model.time=16"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(StudyProcess, EndsWithATableResultsAndAReport) {
  const TemporaryFolder folder;
  const Outcome outcome = test::run(
      folder, small_study(folder / "out", {"--extra-rates", "0", "--schemes", "pre", "post", "norm(2*x + f(x))"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("verdict"), std::string::npos) << outcome.out;
  const auto results = nlohmann::json::parse(test::read_file(folder / "out/results.json"));
  EXPECT_EQ(results["kind"], "study");
  EXPECT_EQ(results["schemes"].size(), 3u);
  EXPECT_EQ(results["runs"].size(), 12u);
  EXPECT_EQ(results["verdicts"].size(), 3u);
  EXPECT_TRUE(results["advice"]["words"].is_string());
  const auto& analyses = results["inspect"];
  const auto gradient =
      std::find_if(analyses.begin(), analyses.end(), [](const auto& a) { return a["name"] == "gradient"; });
  ASSERT_NE(gradient, analyses.end());
  EXPECT_EQ((*gradient)["series"].size(), 3u);
  const std::string report = test::read_file(folder / "out/report.html");
  EXPECT_NE(report.find("<!doctype html>"), std::string::npos);
  EXPECT_NE(report.find("norm(2*x + f(x))"), std::string::npos);
  // The same command again finds everything done.
  const Outcome again = test::run(
      folder, small_study(folder / "out",
                          {"--extra-rates", "0", "--no-inspect", "--schemes", "pre", "post", "norm(2*x + f(x))"}));
  EXPECT_EQ(again.code, 0) << again.err;
}

TEST(StudyProcess, KilledAtRandomMomentsItEndsWithTheSameLosses) {
  const TemporaryFolder folder;
  const auto arguments = [&](const std::string& out) {
    return std::vector<std::string>{"study",
                                    "--out",
                                    out,
                                    "--quiet",
                                    "--no-inspect",
                                    "--schemes",
                                    "pre",
                                    "post",
                                    "--layers",
                                    "2",
                                    "--width",
                                    "16",
                                    "--steps",
                                    "80",
                                    "--lr",
                                    "1e-4,1e-3",
                                    "--warmup",
                                    "0",
                                    "--seeds",
                                    "1,2",
                                    "--train.checkpoint_every=5",
                                    "--model.batch=4",
                                    "--model.time=16"};
  };
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(test::run(folder, arguments(folder / "whole")).code, 0);
  const std::chrono::duration<double, std::milli> straight = std::chrono::steady_clock::now() - start;
  std::uniform_real_distribution<double> patience(1, std::max(20.0, straight.count() / 2));
  std::mt19937 random(std::random_device{}());
  int kills = 0;
  for (bool done = false; !done;) {
    test::Process process(folder, arguments(folder / "broken"));
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(patience(random)));
    process.send(SIGKILL);
    const Outcome outcome = process.wait();
    ASSERT_TRUE(outcome.signal == SIGKILL || outcome.code == 0) << outcome.code << " " << outcome.err;
    done = outcome.code == 0;
    if (!done) ++kills;
    ASSERT_LT(kills, 2000) << "no progress";
  }
  const auto runs_in = [&](const std::string& study) {
    auto runs = nlohmann::json::parse(test::read_file(folder / (study + "/results.json")))["runs"];
    for (auto& run : runs) run.erase("tokens_per_second");
    return runs;
  };
  EXPECT_GT(runs_in("whole").size(), 8u) << "rates beyond the grid";
  EXPECT_EQ(runs_in("broken"), runs_in("whole")) << "after " << kills << " kills";
}

TEST(StudyProcess, MistakesExitWithTwoAndOneClearMessage) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"--schemes", "prre"}, "did you mean 'pre'?"},
      {{"--schemes", "norm(x + "}, "^"},
      {{"--schemes", "pre", "pre"}, "given twice"},
      {{"--depths", "0"}, "depth 0"},
      {{"--text", folder / "missing.txt"}, "No such file"},
      {{"--train.lrr=1"}, "did you mean 'train.lr'?"},
      {{"--seeds", "x"}, "seeds"},
      {{"--extra-rates", "99"}, "extra-rates"},
  };
  for (const auto& [more, message] : mistakes) {
    const Outcome outcome = test::run(folder, small_study(folder / "never", more));
    EXPECT_EQ(outcome.code, 2) << fmt::format("{}: {}", fmt::join(more, " "), outcome.err);
    EXPECT_NE(outcome.err.find(message), std::string::npos) << fmt::format("{}: {}", fmt::join(more, " "), outcome.err);
  }
}

}  // namespace
}  // namespace norma
