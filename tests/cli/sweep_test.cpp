// norma sweep as a process: results, kills, a full disk, mistakes.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "norma/lab/sweep.h"
#include "norma/store/run_directory.h"

namespace norma {
namespace {

using test::Ended;
using test::Process;
using test::TemporaryFolder;
namespace fs = std::filesystem;

std::vector<std::string> small_sweep(const std::string& out, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {
      "--model.scheme=[pre,post]",  "--train.lr=[1e-3,1e5]",     "--train.clip=0",   "--train.steps=150",
      "--train.checkpoint_every=7", "--train.evaluate_every=50", "--train.threads=1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::small_model("sweep", out, arguments);
}

// All losses of all runs, by the name of the run; infinite where they are no numbers, so that they can be compared.
std::map<std::string, std::vector<double>> losses_in(const std::string& sweep) {
  std::map<std::string, std::vector<double>> all;
  for (const fs::directory_entry& run : fs::directory_iterator(fs::path(sweep) / "runs")) {
    const RunOutcome outcome = read_outcome({}, run.path());
    std::vector<double>& values = all[run.path().filename().string()];
    values = outcome.curve.loss;
    values.insert(values.end(), outcome.evaluations.loss.begin(), outcome.evaluations.loss.end());
    std::replace_if(
        values.begin(), values.end(), [](double loss) { return std::isnan(loss); },
        std::numeric_limits<double>::infinity());
    values.push_back(static_cast<double>(outcome.diverged_at_step));
  }
  return all;
}

TEST(SweepProcess, TwoByTwoRunsAndPrintsItsResults) {
  const TemporaryFolder folder;
  const Ended outcome = test::run(folder, small_sweep(folder / "s"));
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

TEST(SweepProcess, KilledAtRandomMomentsItEndsWithTheSameLosses) {
  const TemporaryFolder folder;
  const std::vector<std::string> more = {"--sweep.members=2", "--sweep.halving={eta = 2, min_steps = 40}",
                                         "--train.lr=[1e-4,1e-3,3e-3,1e5]"};
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(test::run(folder, small_sweep(folder / "whole", more)).code, 0);
  const std::chrono::duration<double> straight = std::chrono::steady_clock::now() - start;
  const int kills =
      test::kill_until_done(folder, small_sweep(folder / "broken", more), straight, 1.0 / 6, [] { return false; });
  EXPECT_GT(kills, 2);
  const auto whole = losses_in(folder / "whole"), broken = losses_in(folder / "broken");
  EXPECT_EQ(whole.size(), 8u);
  EXPECT_EQ(whole, broken) << "after " << kills << " kills";
  EXPECT_TRUE(fs::is_empty(folder / "broken/cohorts")) << "nothing is left under way";
}

TEST(SweepProcess, TheIndexIsMadeAnewWhenItIsMissingOrDamaged) {
  const TemporaryFolder folder;
  ASSERT_EQ(test::run(folder, small_sweep(folder / "s", {"--train.steps=10"})).code, 0);
  const std::string index = folder / "s/index.sqlite";
  const auto size = fs::file_size(index);
  fs::remove(index);
  ASSERT_EQ(test::run(folder, small_sweep(folder / "s", {"--train.steps=10"})).code, 0);
  EXPECT_EQ(fs::file_size(index), size);
  std::ofstream(index, std::ios::binary) << std::string(5000, 'x');
  ASSERT_EQ(test::run(folder, small_sweep(folder / "s", {"--train.steps=10"})).code, 0);
  EXPECT_EQ(fs::file_size(index), size);
  EXPECT_EQ(test::read_file(index).substr(0, 15), "SQLite format 3");
}

TEST(SweepProcess, AFullDiskIsAnErrorAndWhatHasEndedStays) {
  const TemporaryFolder folder;
  ASSERT_EQ(test::run(folder, small_sweep(folder / "s", {"--train.steps=10"})).code, 0);
  const auto before = losses_in(folder / "s");
  // No file may grow beyond what a checkpoint of the wide model needs.
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{200'000, limit.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const Ended full = test::run(folder, small_sweep(folder / "s", {"--train.steps=10", "--model.width=[16,128]"}));
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(full.code, 2) << full.err;
  EXPECT_NE(full.err.find("File too large"), std::string::npos) << full.err;
  for (const auto& [id, losses] : before) EXPECT_EQ(losses_in(folder / "s").at(id), losses);
  const Ended again = test::run(folder, small_sweep(folder / "s", {"--train.steps=10", "--model.width=[16,128]"}));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(losses_in(folder / "s").size(), 12u) << "four from before, eight of the new grid";
}

TEST(SweepProcess, JsonFollowsTheFile) {
  const TemporaryFolder folder;
  const std::string file = folder.write("grid.toml", R"toml([model]
layers = 2
width = 16
heads = 2
batch = 4
time = 12
[train]
steps = 20
evaluate_every = 5
[sweep]
"model.scheme" = ["pre", "post"]
"train.lr" = [1e-3, 1e-2]
"train.warmup" = [0, 5]
"train.seed" = [1, 2]
)toml");
  const Ended outcome = test::run(folder, {"sweep", file, "--out", folder / "s", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto all = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(all["runs"].size(), 16u);
  EXPECT_EQ(all["maps"].size(), 2u);
  ASSERT_EQ(all["schemes"].size(), 2u);
  EXPECT_EQ(all["schemes"][0]["title"], "Pre-LN");
  EXPECT_EQ(all["schemes"][0]["layers"], 2);
  EXPECT_FALSE(all["schemes"][1]["formulas"].empty());
  EXPECT_NE(all["schemes"][1]["source"], "");
  EXPECT_GT(all["schemes"][1]["parameters"], 0);
  EXPECT_NE(all["schemes"][1]["diagram_svg"].get<std::string>().find("<svg"), std::string::npos);
  ASSERT_EQ(all["tuned"].size(), 2u);
  EXPECT_EQ(all["tuned"][0]["loss"]["n"], 2);
  EXPECT_EQ(test::read_file(folder / "s/results.json"), outcome.out);
  const Ended report = test::run(folder, {"sweep", file, "--out", folder / "s", "--report"});
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_NE(report.out.find("sensitivity"), std::string::npos) << report.out;
}

TEST(SweepProcess, KeepsItsSchemesAndNoticesAnotherOfTheSameName) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "mine");
  const std::string halved = "title = \"Halved\"\nsublayer = \"x + f(norm(x))/2\"\n";
  folder.write("mine/halved.toml", halved);
  const auto sweep = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--model.scheme=[halved,post]", "--train.steps=4"});
    return test::run(folder, test::small_model("sweep", folder / "s", more));
  };
  ASSERT_EQ(sweep({"--schemes-dir", folder / "mine", "--train.seed=[1,2]"}).code, 0);
  for (const fs::directory_entry& run : fs::directory_iterator(folder / "s/runs")) {
    const bool mine = run.path().filename().string().find("halved") != std::string::npos;
    EXPECT_EQ(test::read_file(run.path() / "scheme.toml") == halved, mine) << run.path();
  }
  const Ended larger = sweep({"--train.seed=[1,2,3]"});
  EXPECT_EQ(larger.code, 0) << "without the folder: " << larger.err;

  folder.write("mine/halved.toml", "title = \"Third\"\nsublayer = \"x + f(norm(x))/3\"\n");
  const Ended other = sweep({"--schemes-dir", folder / "mine", "--train.seed=[1,2,3,4]"});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("began with another scheme 'halved': sublayer was"), std::string::npos) << other.err;
  const Ended report = sweep({"--schemes-dir", folder / "mine", "--train.seed=[1,2,3]", "--report", "--json"});
  ASSERT_EQ(report.code, 0) << report.err;
  const auto schemes = nlohmann::json::parse(report.out)["schemes"];
  ASSERT_EQ(schemes.size(), 2u);
  EXPECT_EQ(schemes[0]["title"], "Halved");
}

TEST(SweepProcess, ARepeatedCommandIsDoneAndSaysSo) {
  const TemporaryFolder folder;
  const std::vector<std::string> arguments = small_sweep(folder / "s", {"--train.steps=10"});
  ASSERT_EQ(test::run(folder, arguments).code, 0);
  const std::string results = test::read_file(folder / "s/results.json");
  const Ended again = test::run(folder, arguments);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find("all 4 runs are already finished; nothing was trained"), std::string::npos) << again.err;
  EXPECT_EQ(test::read_file(folder / "s/results.json"), results) << "with the time that it took";
  folder.write("s/results.json", results.substr(0, 1000));
  EXPECT_EQ(test::run(folder, arguments).code, 0);
  EXPECT_EQ(nlohmann::json::parse(test::read_file(folder / "s/results.json"))["runs"],
            nlohmann::json::parse(results)["runs"]);
  ASSERT_EQ(test::run(folder, test::small_model("train", folder / "run", {"--train.steps=2"})).code, 0);
  const Ended report = test::run(folder, small_sweep(folder / "run", {"--report"}));
  EXPECT_EQ(report.code, 2);
  EXPECT_NE(report.err.find("there is no sweep in"), std::string::npos) << report.err;
  EXPECT_FALSE(fs::exists(folder / "run/results.json"));
}

TEST(SweepProcess, MistakesExitWithTwoAndOneClearMessage) {
  const TemporaryFolder folder;
  std::string thousand = "[0";
  for (int i = 1; i < 1000; ++i) thousand += "," + std::to_string(i);
  thousand += "]";
  const std::string occupied = folder.write("file", "not a folder");
  fs::create_directories(folder / "full");
  folder.write("full/letter.txt", "not a sweep");
  struct Mistake {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Mistake> mistakes = {
      {{}, "the grid is empty"},
      {{"--train.lr=[]"}, "train.lr has no values"},
      {{"--train.seed=" + thousand, "--train.data_seed=" + thousand}, "1000 x 1000 cells"},
      {{"--train.lrr=[1,2]"}, "did you mean 'train.lr'?"},
      {{"--model.scheme=[pre,pots]"}, "pots"},
      {{"--model.heads=[1,7]"}, "7 heads"},
      {{"--members.lr=[1,2]"}, "train.lr"},
      {{"--train.lr=[1,2]", "--model.family=encoder", "--data.task=grammar"}, "expected for it one of masked_grammar"},
      {{"--train.lr=[1,2]", "--out", occupied}, "file"},
      {{"--train.lr=[1,2]", "--out", folder / "full"}, "something else than a sweep"},
      {{"nowhere.toml"}, "there is no file 'nowhere.toml'"},
      {{"pre"}, "there is no file 'pre'; a scheme is given with its option: --scheme pre\n"},
      {{"--train.lr=[1,2]", "--sweep.halving=3"}, "eta"},
      {{"--surplus"}, "'--surplus' is not an option"},
  };
  for (const Mistake& mistake : mistakes) {
    std::vector<std::string> arguments = {"sweep"};
    arguments.insert(arguments.end(), mistake.arguments.begin(), mistake.arguments.end());
    if (std::find(arguments.begin(), arguments.end(), "--out") == arguments.end()) {
      arguments.push_back("--out");
      arguments.push_back(folder / "never");
    }
    const Ended outcome = test::run(folder, arguments);
    EXPECT_EQ(outcome.code, 2) << mistake.message << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(mistake.message), std::string::npos) << outcome.err;
    EXPECT_FALSE(fs::exists(folder / "never")) << mistake.message;
  }
}

}  // namespace
}  // namespace norma
