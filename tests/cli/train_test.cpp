// norma train as a process: results, resumption after signals and kills, refusals.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "norma/store/metrics.h"
#include "norma/store/run_directory.h"

namespace norma {
namespace {

using test::Ended;
using test::Process;
using test::TemporaryFolder;
namespace fs = std::filesystem;

constexpr int kSteps = 400;

std::vector<std::string> small_run(const std::string& out, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"--train.steps=" + std::to_string(kSteps),
                                        "--train.dropout=0.1",
                                        "--train.checkpoint_every=7",
                                        "--train.evaluate_every=50",
                                        "--members.lr=[1e-3, 3e-3, 1e5]",
                                        "--train.clip=0",
                                        "--train.threads=1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::small_model("train", out, arguments);
}

// Everything in metrics.jsonl except how fast it went.
std::string metrics_without_speed(const std::string& run) {
  std::string text;
  for (const MetricRecord& record : read_metrics(RunView(run).metrics_path())) {
    text += std::to_string(record.step);
    for (const Metric& metric : record.metrics) {
      if (metric.name == "tokens_per_second") continue;
      text += " " + metric.name + "=";
      if (const double* number = std::get_if<double>(&metric.value)) text += fmt::format("{}", *number);
      if (const auto* word = std::get_if<std::string>(&metric.value)) text += *word;
      if (const auto* whole = std::get_if<std::int64_t>(&metric.value)) text += std::to_string(*whole);
    }
    text += "\n";
  }
  return text;
}

std::string last_checkpoint(const std::string& run) {
  return test::read_file(RunView(run).checkpoint_path(RunView(run).checkpoint_steps().back()));
}

// As after a kill behind the last checkpoint.
void reopen(const std::string& run) {
  fs::remove(fs::path(run) / "DONE");
  fs::remove(RunView(run).result_path());
}

TEST(TrainProcess, KilledAtRandomMomentsItEndsWithTheSameBits) {
  const TemporaryFolder folder;
  const std::string whole = folder / "whole", broken = folder / "broken";
  const auto before = std::chrono::steady_clock::now();
  const Ended straight = test::run(folder, small_run(whole));
  const std::chrono::duration<double> length = std::chrono::steady_clock::now() - before;
  ASSERT_EQ(straight.code, 0) << straight.err;
  int resumptions = 0;
  // Up to a fifth of the run: mostly past a few checkpoints, sometimes before anything has happened.
  const int kills = test::kill_until_done(folder, small_run(broken), length, 0.2, [&] {
    const RunView run(broken);
    if (run.exists() && !run.checkpoint_steps().empty()) ++resumptions;
    return run.exists() && run.is_done();  // killed after its last file was written
  });
  EXPECT_GT(kills, 3);
  EXPECT_GT(resumptions, 2);
  EXPECT_EQ(last_checkpoint(whole), last_checkpoint(broken)) << "after " << kills << " kills";
  EXPECT_EQ(metrics_without_speed(whole), metrics_without_speed(broken)) << "after " << kills << " kills";
  const auto whole_result = nlohmann::json::parse(RunView(whole).result());
  const auto broken_result = nlohmann::json::parse(RunView(broken).result());
  for (int member = 0; member < 3; ++member)
    EXPECT_EQ(whole_result["members"][member]["final_loss"], broken_result["members"][member]["final_loss"]);
}

TEST(TrainProcess, DivergenceIsAResult) {
  const TemporaryFolder folder;
  const Ended outcome = test::run(folder, small_run(folder / "run", {"--json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto result = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(result["members"].size(), 3u);
  EXPECT_FALSE(result["members"][0]["diverged"]);
  EXPECT_EQ(result["members"][0]["best_loss"], result["members"][0]["best_evaluation_loss"]);
  EXPECT_TRUE(result["members"][2]["diverged"]);
  EXPECT_TRUE(result["members"][2]["diverged_at_step"].is_number_integer());
  EXPECT_NE(result["members"][2]["verdict"].get<std::string>().find("diverged at step"), std::string::npos);
  EXPECT_GT(result["members"][0]["tokens_per_second"].get<double>(), 0);
}

TEST(TrainProcess, ARerunResumesOrRefusesAndNeverOverwrites) {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  ASSERT_EQ(test::run(folder, small_run(out, {"--train.steps=20"})).code, 0);
  const std::string config = RunView(out).config(), result = RunView(out).result();
  const Ended again = test::run(folder, small_run(out, {"--train.steps=20"}));
  EXPECT_EQ(again.code, 0) << "a command that has been done is done";
  EXPECT_NE(again.err.find("is already finished; nothing was trained"), std::string::npos) << again.err;
  EXPECT_NE(again.out.find("verdict"), std::string::npos) << again.out;
  EXPECT_EQ(RunView(out).result(), result);
  const Ended changed = test::run(folder, small_run(out, {"--train.steps=30"}));
  EXPECT_EQ(changed.code, 2);
  EXPECT_NE(changed.err.find("its train.steps is 20, this one's is 30"), std::string::npos) << changed.err;
  test::write_file(RunView(out).result_path(), "{}");
  const Ended damaged = test::run(folder, small_run(out, {"--train.steps=20"}));
  EXPECT_EQ(damaged.code, 2);
  EXPECT_NE(damaged.err.find("result.json' is damaged"), std::string::npos) << damaged.err;
  test::write_file(fs::path(out) / "DONE", "");  // of an earlier version
  EXPECT_EQ(test::run(folder, small_run(out, {"--train.steps=20"})).code, 2);
  fs::remove(fs::path(out) / "DONE");
  fs::remove(RunView(out).result_path());
  const Ended other = test::run(folder, small_run(out, {"--train.steps=30"}));
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("its train.steps is 20, this one's is 30"), std::string::npos) << other.err;
  EXPECT_EQ(RunView(out).config(), config);
}

TEST(TrainProcess, TheStoredConfigurationIsAcceptedBackUnchanged) {
  const TemporaryFolder folder;
  ASSERT_EQ(test::run(folder, small_run(folder / "first", {"--train.steps=20"})).code, 0);
  const std::string stored = folder / "first/config.toml";
  ASSERT_EQ(test::run(folder, {"train", stored, "--out", folder / "second", "--quiet"}).code, 0);
  EXPECT_EQ(test::read_file(stored), test::read_file(folder / "second/config.toml"));
  EXPECT_EQ(last_checkpoint(folder / "first"), last_checkpoint(folder / "second"));
}

TEST(TrainProcess, ADamagedCheckpointIsPassedOverForTheOneBefore) {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  Process process(folder, small_run(out));
  while (!RunView(out).exists() || RunView(out).checkpoint_steps().size() < 2)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  process.send(SIGKILL);
  process.wait();
  const std::vector<std::int64_t> steps = RunView(out).checkpoint_steps();
  ASSERT_GE(steps.size(), 2u);
  fs::resize_file(RunView(out).checkpoint_path(steps.back()), 1000);
  const Ended outcome = test::run(folder, small_run(out));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("warning: ")) << "quiet or not: " << outcome.err;
}

// Every file of a run but the lock, which says who looked at it last.
std::map<std::string, std::string> files_of(const std::string& run) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(run)) {
    if (entry.is_regular_file() && entry.path().filename() != ".lock")
      files[entry.path().string()] = test::read_file(entry.path());
  }
  return files;
}

TEST(TrainProcess, ARunWhoseCheckpointsAreAllLostKeepsItsHistory) {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  const std::vector<std::string> arguments = small_run(out, {"--train.steps=30", "--train.log_every=1"});
  ASSERT_EQ(test::run(folder, arguments).code, 0);
  reopen(out);
  const std::vector<std::int64_t> steps = RunView(out).checkpoint_steps();
  for (const std::int64_t step : steps) fs::resize_file(RunView(out).checkpoint_path(step), 1000);
  const auto refused = [&](const std::string& why) {
    const auto before = files_of(out);
    const Ended outcome = test::run(folder, arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find("'" + out + "' holds a run that cannot go on"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
    EXPECT_EQ(files_of(out), before);
  };
  refused(RunView(out).checkpoint_path(steps.back()).string());
  for (const std::int64_t step : steps) fs::remove(RunView(out).checkpoint_path(step));
  refused("though metrics.jsonl goes to step 30");
}

TEST(TrainProcess, ARunThatWasKilledBeforeItsFirstCheckpointStartsAfresh) {
  const TemporaryFolder folder;
  const std::string out = folder / "run", whole = folder / "whole";
  const std::vector<std::string> rare = {"--train.steps=30", "--train.log_every=1", "--train.checkpoint_every=25"};
  ASSERT_EQ(test::run(folder, small_run(whole, rare)).code, 0);
  ASSERT_EQ(test::run(folder, small_run(out, rare)).code, 0);
  reopen(out);
  for (const std::int64_t step : RunView(out).checkpoint_steps()) fs::remove(RunView(out).checkpoint_path(step));
  // As a kill after 25 steps leaves it.
  { MetricsLog::resume(RunView(out).metrics_path(), 25); }
  const Ended outcome = test::run(folder, small_run(out, rare));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(metrics_without_speed(out), metrics_without_speed(whole));
}

constexpr const char* kHalved = "title = \"Halved\"\nsublayer = \"x + f(norm(x))/2\"\n";

TEST(TrainProcess, ARunKeepsItsSchemeAndNoticesAnotherOfTheSameName) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "mine");
  folder.write("mine/halved.toml", kHalved);
  const std::string out = folder / "run";
  const auto train = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--train.steps=20", "--model.scheme=halved"});
    return test::run(folder, test::small_model("train", out, more));
  };
  const std::vector<std::string> with = {"--schemes-dir", folder / "mine"};
  ASSERT_EQ(train(with).code, 0);
  EXPECT_EQ(test::read_file(RunView(out).scheme_path()), kHalved);
  const std::vector<std::string> say = {"generate", out, "--tokens", "12", "--temperature", "0"};
  const Ended said = test::run(folder, say);
  EXPECT_EQ(said.code, 0) << said.err;

  reopen(out);
  const Ended resumed = train({});
  EXPECT_EQ(resumed.code, 0) << "without the folder: " << resumed.err;

  folder.write("mine/halved.toml", "# a comment\ntitle = \"Half\"\nsublayer = \"x + f(norm(x))/2\"\n");
  reopen(out);
  EXPECT_EQ(train(with).code, 0) << "another title is no other model";

  folder.write("mine/halved.toml", "sublayer = \"x + f(norm(x))/3\"\n");
  reopen(out);
  const Ended other = train(with);
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("the scheme 'halved' has changed since it began: sublayer was 'x + f(norm(x))/2', now it is "
                           "'x + f(norm(x))/3'"),
            std::string::npos)
      << other.err;

  // Whoever reads the run reads its own scheme.
  const auto beside = [&](std::vector<std::string> verb) {
    verb.insert(verb.end(), with.begin(), with.end());
    return test::run(folder, verb);
  };
  EXPECT_EQ(beside(say).out, said.out);
  const Ended inspected = beside({"inspect", "--run", out, "--only", "stream", "--json", "--quiet"});
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_EQ(nlohmann::json::parse(inspected.out)["schemes"][0]["title"], "Halved");
  const std::string checkpoint = RunView(out).checkpoint_path(20);
  EXPECT_EQ(test::run(folder, {"generate", checkpoint, "--tokens", "12", "--temperature", "0"}).out, said.out);
}

TEST(TrainProcess, AnotherSchemeIsNotOneThatHasChanged) {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  ASSERT_EQ(test::run(folder, test::small_model("train", out, {"--train.steps=2"})).code, 0);
  const Ended other = test::run(folder, test::small_model("train", out, {"--train.steps=2", "--scheme", "post"}));
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("its model.scheme is \"pre\", this one's is \"post\""), std::string::npos) << other.err;
}

TEST(TrainProcess, ARunOfEarlierVersionsHasNoSchemeOfItsOwn) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "mine");
  folder.write("mine/halved.toml", kHalved);
  const std::string out = folder / "run";
  const std::vector<std::string> train =
      test::small_model("train", out, {"--schemes-dir", folder / "mine", "--train.steps=2", "--model.scheme=halved"});
  ASSERT_EQ(test::run(folder, train).code, 0);
  fs::remove(RunView(out).scheme_path());
  const Ended lost = test::run(folder, {"generate", out, "--tokens", "2"});
  EXPECT_EQ(lost.code, 2);
  EXPECT_NE(lost.err.find("there is no scheme named 'halved'"), std::string::npos) << lost.err;
  EXPECT_EQ(test::run(folder, {"generate", out, "--tokens", "2", "--schemes-dir", folder / "mine"}).code, 0);
  reopen(out);
  EXPECT_EQ(test::run(folder, train).code, 0);
}

TEST(TrainProcess, AFormulaNeedsNoFile) {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  const Ended outcome =
      test::run(folder, test::small_model("train", out, {"--train.steps=2", "--model.scheme=x + f(norm(x))/2"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(fs::exists(RunView(out).scheme_path()));
  EXPECT_EQ(test::run(folder, {"generate", out, "--tokens", "2"}).code, 0);
}

}  // namespace
}  // namespace norma
