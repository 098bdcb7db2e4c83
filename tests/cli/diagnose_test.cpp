// norma diagnose, compare and runs as their users run them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "norma/store/run_directory.h"

namespace norma {
namespace {

using test::Ended;
using test::Process;
using test::TemporaryFolder;

Ended train(const TemporaryFolder& folder, const std::string& name, const std::vector<std::string>& more) {
  return test::run(folder, test::small_model("train", folder / name, more));
}

// Like run(), on a terminal of so many columns.
Ended run_in(const TemporaryFolder& folder, const char* columns, const std::vector<std::string>& arguments) {
  setenv("COLUMNS", columns, 1);
  Ended ended = test::run(folder, arguments);
  unsetenv("COLUMNS");
  return ended;
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0, width = 0;
  for (const char c : text) {
    width = c == '\n' ? 0 : width + ((c & 0xC0) != 0x80);
    widest = std::max(widest, width);
  }
  return widest;
}

TEST(DiagnoseProcess, ARunThatFailsEndsWithTheReasonAndDiagnoseHasTheEvidence) {
  const TemporaryFolder folder;
  const Ended trained = train(folder, "run", {"--train.steps=60", "--train.lr=3"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.out.find("diverged: the learning rate is too high"), std::string::npos) << trained.out;
  EXPECT_NE(trained.out.find("try: lower the learning rate"), std::string::npos) << trained.out;
  const Ended told = test::run(folder, {"diagnose", folder / "run"});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_NE(told.out.find("because"), std::string::npos) << told.out;
  const auto parsed = nlohmann::json::parse(test::run(folder, {"diagnose", folder / "run", "--json"}).out);
  EXPECT_EQ(parsed.at("members").at(0).at("cause"), "learning rate too high");
}

TEST(DiagnoseProcess, ARunOfPaddingAloneIsSaidToBeThatFromTheStart) {
  const TemporaryFolder folder;
  const std::string padding = folder.write("padding.bin", std::string(8000, '\0'));
  const Ended trained =
      train(folder, "run", {"--train.steps=10", "--data.task=tokens", "--data.path=" + padding, "--quiet"});
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.err.find("warning: there is nothing to learn: all of 4128 targets are token 0"), std::string::npos)
      << trained.err;
  const std::string words = "nothing to learn: in its batches all of 4128 targets are token 0";
  EXPECT_NE(trained.out.find(words), std::string::npos) << trained.out;
  const Ended told = test::run(folder, {"diagnose", folder / "run"});
  EXPECT_NE(told.out.find("nothing to learn: nothing in the batches"), std::string::npos) << told.out;
}

TEST(DiagnoseProcess, AHealthyRunEndsWithoutWordsOfFailure) {
  const TemporaryFolder folder;
  const Ended trained = train(folder, "run", {"--train.steps=300", "--train.lr=1e-2"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(trained.out.find("diagnose"), std::string::npos) << trained.out;
  const Ended told = test::run(folder, {"diagnose", folder / "run"});
  EXPECT_NE(told.out.find("healthy"), std::string::npos) << told.out;
}

TEST(DiagnoseProcess, TriesTheCheapestExperimentsAndSaysWhatTheyCostFirst) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder, "run", {"--train.steps=200", "--train.lr=3"}).code, 0);
  const Ended tried = test::run(folder, {"diagnose", folder / "run", "--try"});
  ASSERT_EQ(tried.code, 0) << tried.err;
  EXPECT_NE(tried.err.find("about"), std::string::npos) << tried.err;
  EXPECT_NE(tried.out.find("as it was"), std::string::npos) << tried.out;
  EXPECT_NE(tried.out.find("What helped most"), std::string::npos) << tried.out;
  const auto parsed = nlohmann::json::parse(test::run(folder, {"diagnose", folder / "run", "--try", "--json"}).out);
  EXPECT_GE(parsed.at("trials").size(), 3u);
}

// The run was on `auto`; its experiments are where they are asked to be.
TEST(DiagnoseProcess, TriesWhereItIsAskedTo) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder, "run", {"--train.steps=40", "--train.lr=3"}).code, 0);
  const std::vector<std::string> words = {"diagnose", folder / "run", "--try", "--steps", "20", "--device"};
  const auto on = [&](const char* device) {
    std::vector<std::string> all = words;
    all.emplace_back(device);
    return test::run(folder, all);
  };
  const Ended unknown = on("gpu");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("unknown device 'gpu'; expected auto, cpu or cuda"), std::string::npos) << unknown.err;
  EXPECT_EQ(unknown.out, "") << "before anything is said";
  const Ended tried = on("cpu");
  ASSERT_EQ(tried.code, 0) << tried.err;
  EXPECT_NE(tried.err.find("about ? in all"), std::string::npos) << "how fast it was there says nothing: " << tried.err;
  const std::string config = RunView(std::filesystem::path(folder / "run-try") / "0-as-it-was").config();
  EXPECT_NE(config.find("device = \"cpu\""), std::string::npos) << config;
}

TEST(DiagnoseProcess, StopsWhenAskedAndGoesOnFromThere) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder, "run", {"--train.steps=40", "--train.lr=1e-7"}).code, 0);
  // Far more steps than can have been taken when the signal comes.
  Process process(folder, {"diagnose", folder / "run", "--try", "--steps", "1000000"});
  const RunView first(std::filesystem::path(folder / "run-try") / "0-as-it-was");
  for (int i = 0; i < 6000 && first.checkpoint_steps().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  process.send(SIGINT);
  const Ended stopped = process.wait();
  EXPECT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_NE(stopped.err.find("stop"), std::string::npos) << stopped.err;
  ASSERT_FALSE(first.checkpoint_steps().empty());
  EXPECT_NO_THROW(first.checkpoint(first.checkpoint_steps().back()));
  // Changed by nobody, it goes on: the same trial from the checkpoint it left.
  Process again(folder, {"diagnose", folder / "run", "--try", "--steps", "1000000"});
  const std::int64_t left = first.checkpoint_steps().back();
  for (int i = 0; i < 6000 && first.checkpoint_steps().back() == left; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  again.send(SIGTERM);
  EXPECT_EQ(again.wait().code, 130);
  EXPECT_GT(first.checkpoint_steps().back(), left);
}

TEST(DiagnoseProcess, HostileInputIsAMistakeWithAMessage) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder, "run", {"--train.steps=5"}).code, 0);
  std::filesystem::copy(folder / "run", folder / "damaged", std::filesystem::copy_options::recursive);
  test::write_file(folder / "damaged/result.json", "[1, 2");
  std::filesystem::create_directory(folder / "empty");
  folder.write("file", "x");
  for (const char* verb : {"diagnose", "compare"}) {
    for (const char* name : {"none", "damaged", "empty", "file"}) {
      const Ended ended = test::run(folder, {verb, folder / name});
      EXPECT_EQ(ended.code, 2) << verb << " " << name << ": " << ended.err;
      EXPECT_NE(ended.err.find(name), std::string::npos) << ended.err;
    }
  }
  EXPECT_EQ(test::run(folder, {"runs", folder / "none"}).code, 2);
  EXPECT_EQ(test::run(folder, {"runs", folder / "file"}).code, 2);
  EXPECT_EQ(test::run(folder, {"runs", folder.path().string(), "--sort", "beauty"}).code, 2);
  EXPECT_EQ(test::run(folder, {"diagnose", folder / "run", "--member", "7"}).code, 2);
  EXPECT_EQ(test::run(folder, {"diagnose"}).code, 2);
  const Ended itself = test::run(folder, {"diagnose", folder / "run", "--try", "--out", folder / "run/../run/"});
  EXPECT_EQ(itself.code, 2);
  EXPECT_NE(itself.err.find("is the run itself"), std::string::npos) << itself.err;
}

TEST(DiagnoseProcess, NothingIsWiderThanTheTerminal) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder, "a-run-with-a-name-that-is-longer-than-most", {"--train.steps=40", "--train.lr=3"}).code, 0);
  ASSERT_EQ(train(folder, "b", {"--train.steps=40", "--members.seed=[1,2,3]"}).code, 0);
  std::filesystem::create_directory(folder / "foreign");
  const std::string first = folder / "a-run-with-a-name-that-is-longer-than-most";
  for (const char* columns : {"40", "80", "120"}) {
    for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
             {"diagnose", first}, {"compare", first, folder / "b"}, {"runs", folder.path().string()}}) {
      const Ended ended = run_in(folder, columns, command);
      EXPECT_EQ(ended.code, 0) << ended.err;
      EXPECT_LE(widest_line(ended.out), std::stoul(columns)) << ended.out;
    }
  }
}

TEST(CompareProcess, ShowsLossesCurvesDifferencesAndWhatTheSeedsSupport) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder, "a", {"--train.steps=120", "--members.seed=[1,2,3]", "--train.lr=1e-2"}).code, 0);
  ASSERT_EQ(train(folder, "b", {"--train.steps=120", "--members.seed=[1,2,3]", "--train.lr=1e-6"}).code, 0);
  const Ended told = test::run(folder, {"compare", folder / "a", folder / "b"});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_NE(told.out.find("train.lr"), std::string::npos) << told.out;
  EXPECT_NE(told.out.find("lr=0.01 loses"), std::string::npos) << told.out;
  EXPECT_EQ(told.out.find("does not support"), std::string::npos) << told.out;
  const auto parsed = nlohmann::json::parse(test::run(folder, {"compare", folder / "a", folder / "b", "--json"}).out);
  EXPECT_TRUE(parsed.at("pairs").at(0).at("supported"));
  EXPECT_GT(parsed.at("runs").at(0).at("curve").at("loss").size(), 5u);
}

// A run that rises beside one that stays where it was: the first step may not set the scale for all.
TEST(CompareProcess, ARunThatRisesIsSeenToRise) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder, "still", {"--train.steps=20", "--train.lr=1e-12"}).code, 0);
  ASSERT_EQ(train(folder, "rising", {"--train.steps=20", "--train.lr=1", "--detect.rise=0", "--detect.spike=0"}).code,
            0);
  const Ended told = test::run(folder, {"compare", folder / "still", folder / "rising"});
  ASSERT_EQ(told.code, 0) << told.err;
  const auto line = [&](const std::string& name) {
    const std::size_t at = told.out.find("  " + name + " ");
    return told.out.substr(at, told.out.find('\n', at) - at);
  };
  const std::size_t curves = told.out.find("training loss by step");
  ASSERT_NE(curves, std::string::npos) << told.out;
  EXPECT_NE(line("rising").find("█"), std::string::npos) << told.out;
  EXPECT_EQ(line("still").find("█"), std::string::npos) << told.out;
}

TEST(RunsProcess, ANameOfSeveralLinesIsOneLineOfTheTable) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "all");
  ASSERT_EQ(train(folder, "all/two\nlines", {"--train.steps=2"}).code, 0);
  const Ended told = test::run(folder, {"runs", folder / "all"});
  EXPECT_NE(told.out.find("two\\x0alines"), std::string::npos) << told.out;
}

TEST(RunsProcess, ListsSortsAndNamesTheRest) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "all");
  ASSERT_EQ(train(folder, "all/worse", {"--train.steps=50", "--train.lr=1e-7"}).code, 0);
  ASSERT_EQ(train(folder, "all/better", {"--train.steps=50", "--train.lr=1e-2"}).code, 0);
  std::filesystem::create_directory(folder / "all/broken");
  test::write_file(folder / "all/broken/config.toml", "{");
  std::filesystem::create_directory(folder / "all/other");
  const Ended told = test::run(folder, {"runs", folder / "all", "--sort", "loss"});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_LT(told.out.find("better"), told.out.find("worse")) << told.out;
  EXPECT_NE(told.out.find("damaged: broken"), std::string::npos) << told.out;
  EXPECT_NE(told.out.find("holds no run: other"), std::string::npos) << told.out;
  const auto parsed = nlohmann::json::parse(test::run(folder, {"runs", folder / "all", "--json"}).out);
  EXPECT_EQ(parsed.at("runs").size(), 2u);
}

}  // namespace
}  // namespace norma
