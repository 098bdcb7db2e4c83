// Ctrl-C: every verb that takes long says something at once, ends soon, and keeps what it has done.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/process.h"
#include "norma/lab/results.h"

namespace norma {
namespace {

using test::Ended;
using test::Process;
using test::TemporaryFolder;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

double seconds_from(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A loaded machine may take its time to start a process and to end one.
constexpr double kStartPatience = 60, kPromptly = 20;

template <typename Condition>
bool becomes(Condition condition) {
  for (const auto start = Clock::now(); seconds_from(start) < kStartPatience;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

struct StoppedProcess {
  Ended ended;
  double seconds = 0;  // from the signal to the end
};

// Sent when `begun`; what the process says is in the folder from the start.
template <typename Condition>
StoppedProcess stop_when(const TemporaryFolder& folder, const std::vector<std::string>& arguments, Condition begun) {
  Process process(folder, arguments);
  EXPECT_TRUE(becomes(begun)) << fmt::format("{}", fmt::join(arguments, " "));
  const auto start = Clock::now();
  process.send(SIGINT);
  StoppedProcess stopped{.ended = process.wait()};
  stopped.seconds = seconds_from(start);
  return stopped;
}

void expect_stopped(const StoppedProcess& stopped) {
  EXPECT_EQ(stopped.ended.code, 130) << stopped.ended.signal << stopped.ended.err;
  EXPECT_LT(stopped.seconds, kPromptly);
  EXPECT_NE(stopped.ended.err.find("stopp"), std::string::npos) << stopped.ended.err;
}

bool file_holds(const fs::path& file, const std::string& text) {
  std::ifstream in(file);
  return std::string(std::istreambuf_iterator<char>(in), {}).find(text) != std::string::npos;
}

bool any_holds(const TemporaryFolder& folder, const std::string& text) {
  for (const auto& entry : fs::directory_iterator(folder / ".")) {
    if (entry.path().filename().string().starts_with("err") && file_holds(entry.path(), text)) return true;
  }
  return false;
}

TEST(Stop, TrainKeepsACheckpointAndGoesOn) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  std::vector<std::string> arguments =
      test::small_model("train", run, {"--train.steps=1000000", "--train.log_every=1"});
  expect_stopped(stop_when(folder, arguments, [&] { return file_holds(run + "/metrics.jsonl", "\"loss\""); }));
  EXPECT_FALSE(fs::is_empty(run + "/checkpoints"));
  EXPECT_FALSE(fs::exists(run + "/DONE"));
  std::erase(arguments, "--quiet");
  const StoppedProcess again = stop_when(folder, arguments, [&] { return any_holds(folder, "resumed at step"); });
  expect_stopped(again);
}

TEST(Stop, SweepKeepsItsRuns) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments =
      test::small_model("sweep", folder / "sweep", {"--train.steps=1000000", "--train.lr=[1e-3,1e-2]"});
  std::erase(arguments, "--quiet");
  expect_stopped(stop_when(folder, arguments, [&] { return any_holds(folder, "cohort 1 of "); }));
  EXPECT_TRUE(fs::exists(folder / "sweep/sweep.toml"));
}

TEST(Stop, StudyStopsInItsAnalysesAndInTraining) {
  const TemporaryFolder folder;
  const std::vector<std::string> analyses = {"study", "pre", "--depths", "200,400", "--out", folder / "study"};
  expect_stopped(stop_when(folder, analyses, [&] { return any_holds(folder, "analyses at init"); }));
  const std::vector<std::string> training = {
      "study",    "pre", "--no-inspect", "--steps", "1000000", "--out", folder / "other",
      "--layers", "2",   "--budget",     "0"};
  expect_stopped(stop_when(folder, training, [&] { return any_holds(folder, "map ..."); }));
}

// Products with a long inner side are taken apart in a buffer that the stack pointer points to meanwhile: a signal must
// not write there. Without a stack of its own for signals four of ten such runs ended with a damaged heap.
TEST(Stop, TrainingMayBeInterruptedInTheMiddleOfAProduct) {
  const TemporaryFolder folder;
  for (int run = 0; run < 8; ++run) {
    const std::string out = folder / fmt::format("run{}", run);
    const auto begun = [&] {
      if (!file_holds(out + "/metrics.jsonl", "\"loss\"")) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(37 * run));  // anywhere in a step
      return true;
    };
    expect_stopped(
        stop_when(folder,
                  {"train", "--out", out, "--train.steps=1000000", "--train.threads=1", "--train.log_every=1",
                   "--model.layers=1", "--model.width=128", "--model.batch=64", "--model.time=128"},
                  begun));
  }
}

TEST(Stop, InspectShowsWhatItHasMeasured) {
  const TemporaryFolder folder;
  const std::string out = folder / "results.json";
  // The stream is there at once; the Jacobian of the deep model takes far longer than anybody waits.
  const std::vector<std::string> arguments = {"inspect", "pre", "--depths",  "2,400", "--only", "stream,jacobian",
                                              "--width", "64",  "--threads", "1",     "--out",  out,
                                              "--seeds", "1",   "--time",    "64"};
  const StoppedProcess stopped =
      stop_when(folder, arguments, [&] { return any_holds(folder, "400 layers: jacobian"); });
  expect_stopped(stopped);
  EXPECT_NE(stopped.ended.out.find("stopped after"), std::string::npos) << stopped.ended.out;
  EXPECT_FALSE(read_results(test::read_file(out), out).analyses.empty());
}

TEST(Stop, WhatKeepsNothingEndsAtOnce) {
  const TemporaryFolder folder;
  const std::vector<std::vector<std::string>> all = {
      {"check", "--model.layers=20000", "--model.width=16", "--model.heads=2", "--out", folder / "check"}};
  for (const std::vector<std::string>& arguments : all) {
    SCOPED_TRACE(arguments[0]);
    Process process(folder, arguments);
    std::this_thread::sleep_for(std::chrono::seconds(2));
    const auto start = Clock::now();
    process.send(SIGINT);
    expect_stopped({process.wait(), seconds_from(start)});
  }
}

TEST(Stop, PredictKeepsTheLabelsItHasPrinted) {
  const TemporaryFolder folder;
  std::string table = "label,text\n", texts;
  for (int i = 0; i < 200; ++i)
    table += fmt::format("{} film {}\n", i % 2 == 0 ? "good,a splendid" : "bad,an awful", i);
  for (int i = 0; i < 400000; ++i) texts += "a splendid film\n";
  const std::string data = folder.write("table.csv", table), lines = folder.write("lines.txt", texts);
  ASSERT_EQ(test::run(folder, test::small_model("train", folder / "run",
                                                {"--model.family=encoder", "--data.path=" + data, "--train.steps=5"}))
                .code,
            0);
  const auto labels_printed = [&] {
    for (const auto& entry : fs::directory_iterator(folder / ".")) {
      if (entry.path().filename().string().starts_with("out") && file_holds(entry.path(), "a splendid film"))
        return true;
    }
    return false;
  };
  const StoppedProcess stopped = stop_when(folder, {"predict", folder / "run", "--source", lines}, labels_printed);
  expect_stopped(stopped);
  const auto printed = std::count(stopped.ended.out.begin(), stopped.ended.out.end(), '\n');
  EXPECT_GT(printed, 0);
  EXPECT_LT(printed, 400000) << "it was stopped before its end";
}

TEST(Stop, GenerateShowsATextAsFarAsItCame) {
  const TemporaryFolder folder;
  std::string story;
  for (int i = 0; i < 300; ++i) story += fmt::format("norma was here {} times. ", i);
  const std::string text = folder.write("story.txt", story), run = folder / "run";
  ASSERT_EQ(test::run(folder, test::small_model("train", run, {"--data.path=" + text, "--train.steps=5"})).code, 0);
  const StoppedProcess stopped = stop_when(folder, {"generate", run, "--prompt", "norma", "--tokens", "100000000"},
                                           [&] { return any_holds(folder, "writing at most"); });
  expect_stopped(stopped);
  EXPECT_TRUE(stopped.ended.out.starts_with("norma")) << stopped.ended.out.substr(0, 100);
  EXPECT_GT(stopped.ended.out.size(), 6u);
}

TEST(Stop, BenchShowsWhatItHasMeasured) {
  for (const bool as_json : {false, true}) {
    const TemporaryFolder folder;
    const std::string kept = folder / "kept";
    std::vector<std::string> arguments = {"bench", "--seconds", "0.01", "--out", kept};
    if (as_json) arguments.push_back("--json");
    const StoppedProcess stopped = stop_when(folder, arguments, [&] { return any_holds(folder, "measuring norms"); });
    expect_stopped(stopped);
    EXPECT_NE(stopped.ended.out.find("sgemm_gflops"), std::string::npos) << "the limits were measured before";
    EXPECT_NE(stopped.ended.out.find("interrupted"), std::string::npos) << stopped.ended.out;
    EXPECT_NE(stopped.ended.err.find("results so far written to"), std::string::npos) << stopped.ended.err;
    EXPECT_FALSE(fs::is_empty(kept));
  }
}

TEST(Stop, APlanThatMeasuresLeavesNothingBehind) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "tmp");
  setenv("TMPDIR", (folder / "tmp").c_str(), 1);
  const std::vector<std::string> arguments = {"plan", "--measure", "--model.layers=400", "--model.width=256"};
  const StoppedProcess stopped = stop_when(folder, arguments, [&] { return !fs::is_empty(folder / "tmp"); });
  unsetenv("TMPDIR");
  expect_stopped(stopped);
  EXPECT_TRUE(fs::is_empty(folder / "tmp"));
}

// No phase of any length is silent, also where nobody watches a terminal.
TEST(Stop, PipedOutputHasPlainLines) {
  const TemporaryFolder folder;
  const std::vector<std::string> arguments = {"inspect", "pre",      "--depths",  "64",
                                              "--only",  "jacobian", "--threads", "1"};
  expect_stopped(stop_when(folder, arguments, [&] { return any_holds(folder, "jacobian"); }));
  for (const auto& entry : fs::directory_iterator(folder / "."))
    EXPECT_FALSE(file_holds(entry.path(), "\x1b")) << "nothing is redrawn in a file";
}

}  // namespace
}  // namespace norma
