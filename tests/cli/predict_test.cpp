// Runs on the data of their users: classifiers, vocabularies that travel, and directories of their own.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "places.h"

namespace norma {
namespace {

using test::Ended;
using test::TemporaryFolder;
namespace fs = std::filesystem;

// Which word decides is easy to see.
std::string reviews(const TemporaryFolder& folder) {
  std::string text = "id,text,label\n";
  const char* const good[] = {"wonderful", "splendid", "lovely"};
  const char* const bad[] = {"dreadful", "boring", "awful"};
  for (int i = 0; i < 240; ++i)
    text += fmt::format("{},\"a {} film, number {}\",{}\n", i, (i % 2 == 0 ? good : bad)[i / 2 % 3], i % 7,
                        i % 2 == 0 ? "positive" : "negative");
  return folder.write("reviews.csv", text);
}

std::vector<std::string> small_classifier(const std::string& out, const std::string& data,
                                          const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"train",
                                        "--out",
                                        out,
                                        "--quiet",
                                        "--model.family=encoder",
                                        "--data.path=" + data,
                                        "--data.tokenizer=words",
                                        "--model.layers=1",
                                        "--model.width=16",
                                        "--model.heads=2",
                                        "--model.batch=8",
                                        "--model.time=12",
                                        "--train.steps=60",
                                        "--train.lr=1e-2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Predict, ALabelledTableMakesAClassifierThatLabelsTexts) {
  const TemporaryFolder folder;
  const std::string data = reviews(folder), run = folder / "run";
  const Ended trained = test::run(folder, small_classifier(run, data, {"--data.evaluation_batches=1"}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.out.find("accuracy on 8 of "), std::string::npos) << trained.out;
  EXPECT_NE(trained.out.find("data.evaluation_batches=0 takes all"), std::string::npos) << trained.out;
  const Ended all = test::run(folder, small_classifier(folder / "all", data, {"--data.evaluation_batches=0"}));
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_EQ(all.out.find(" of "), std::string::npos) << "all of them:\n" << all.out;

  fs::remove(data);  // a run needs it no more
  const Ended said =
      test::run(folder, {"predict", run, "a splendid film, number 3", "a boring film, number 1", "--json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const nlohmann::json predictions = nlohmann::json::parse(said.out).at("predictions");
  ASSERT_EQ(predictions.size(), 2U);
  EXPECT_EQ(predictions[0].at("label"), "positive");
  EXPECT_EQ(predictions[1].at("label"), "negative");
  EXPECT_GT(predictions[0].at("probabilities").at("positive").get<double>(), 0.8);

  const std::string lines = folder.write("lines.txt", "a lovely film\r\nawful\n");
  const Ended listed = test::run(folder, {"predict", run, "--source", lines});
  ASSERT_EQ(listed.code, 0) << listed.err;
  EXPECT_TRUE(listed.out.starts_with("positive  ")) << listed.out;
  const Ended mistaken = test::run(folder, {"predict", run, lines});
  EXPECT_EQ(mistaken.code, 0) << mistaken.err;
  EXPECT_NE(mistaken.err.find("is taken for a text; --source "), std::string::npos) << mistaken.err;
  EXPECT_NE(listed.out.find("\nnegative  "), std::string::npos) << listed.out;
}

// Bright and dark squares as binary files of CIFAR's layout; labels by brightness.
TEST(Predict, AClassifierOfImagesLabelsThemWithoutItsData) {
  const TemporaryFolder folder;
  std::string bytes;
  for (int image = 0; image < 60; ++image) {
    bytes += static_cast<char>(image % 2);
    for (int pixel = 0; pixel < 3072; ++pixel)
      bytes += static_cast<char>((image % 2 == 0 ? 20 : 180) + (pixel * 31 + image * 17) % 40);
  }
  const std::string data = folder.write("train.bin", bytes), run = folder / "run";
  const Ended trained =
      test::run(folder, {"train", "--quiet", "--out", run, "--model.family=vit", "--data.path=" + data,
                         "--model.layers=1", "--model.width=16", "--model.heads=2", "--model.batch=8",
                         "--train.steps=30", "--train.lr=1e-2", "--data.settings.flip=1"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  fs::rename(data, folder / "elsewhere.bin");
  fs::rename(run, run + "-moved");
  const Ended said = test::run(folder, {"predict", run + "-moved", folder / "elsewhere.bin", "--json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const nlohmann::json predictions = nlohmann::json::parse(said.out).at("predictions");
  ASSERT_EQ(predictions.size(), 60U);
  int right = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i) right += predictions[i].at("label") == std::to_string(i % 2);
  EXPECT_GT(right, 55);
  const Ended other = test::run(folder, {"predict", run + "-moved", folder.write("text.png", "no image")});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("text.png"), std::string::npos) << other.err;
}

TEST(Predict, AMemberOfASweepSpeaksWithoutItsText) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 300; ++i) text += "the cat sat on the mat and saw some mice\n";
  const std::string data = folder.write("text.txt", text);
  const Ended swept = test::run(folder, test::small_model("sweep", folder / "sweep",
                                                          {"--train.steps=4", "--train.lr=[1e-3,1e-2]",
                                                           "--data.path=" + data, "--data.tokenizer=words"}));
  ASSERT_EQ(swept.code, 0) << swept.err;
  fs::remove(data);
  int members = 0;
  for (const auto& member : fs::directory_iterator(folder / "sweep/runs")) {
    ++members;
    EXPECT_TRUE(fs::exists(member.path() / "vocabulary.json"));
    fs::rename(member.path(), folder / "moved");
    const Ended said = test::run(folder, {"generate", folder / "moved", "--prompt", "the cat", "--tokens", "3"});
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_TRUE(said.out.starts_with("the cat")) << said.out;
    fs::rename(folder / "moved", member.path());
  }
  EXPECT_EQ(members, 2);
}

TEST(Predict, MistakesExitWithTwo) {
  const TemporaryFolder folder;
  ASSERT_EQ(test::run(folder, test::small_model("train", folder / "run", {"--train.steps=2"})).code, 0);
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"predict", folder / "run", "text"}, "is not a classifier of texts or images"},
      {{"predict", folder / "run"}, "takes texts, or a file"},
      {{"predict", folder / "nowhere", "text"}, "there is no run"},
      {{"generate", folder / "run", "--source", folder / "nothing"}, "nothing"}};
  for (const auto& [arguments, message] : mistakes) {
    const Ended ended = test::run(folder, arguments);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_NE(ended.err.find(message), std::string::npos) << ended.err;
  }
}

TEST(Predict, ALanguageModelSpeaksWithoutItsText) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 300; ++i) text += "the cat sat on the mat and saw some mice\n";
  for (const std::string tokenizer : {"words", "characters"}) {
    const std::string data = folder.write("text.txt", text), run = folder / tokenizer;
    const Ended trained = test::run(
        folder,
        test::small_model("train", run, {"--train.steps=4", "--data.path=" + data, "--data.tokenizer=" + tokenizer}));
    ASSERT_EQ(trained.code, 0) << trained.err;
    const std::vector<std::string> asked = {"generate", run, "--prompt", "the cat", "--tokens", "5", "--seed", "3"};
    const Ended before = test::run(folder, asked);
    ASSERT_EQ(before.code, 0) << before.err;
    fs::rename(data, folder / "gone");
    fs::rename(run, run + "-moved");
    std::vector<std::string> moved = asked;
    moved[1] = run + "-moved";
    EXPECT_EQ(test::run(folder, moved).out, before.out);
    const Ended unasked = test::run(folder, {"generate", run + "-moved", "--tokens", "3"});
    EXPECT_EQ(unasked.code, 0) << unasked.err;
    EXPECT_TRUE(unasked.out.starts_with("t")) << "as the first held-out row does: " << unasked.out;
  }
}

// `norma <arguments>` in a folder.
Ended run_in(const TemporaryFolder& folder, const std::string& arguments) {
  const std::string command =
      fmt::format("cd '{0}' && {2} {1} > '{0}/in.out' 2> '{0}/in.err'", folder / ".", arguments, test::kProgram);
  const int status = std::system(command.c_str());
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = test::read_file(folder / "in.out"),
          .err = test::read_file(folder / "in.err")};
}

TEST(TrainProcess, WhoNamesNoDirectoryGetsOneOfHisOwn) {
  const TemporaryFolder folder;
  const std::string small =
      "train --quiet --model.layers=1 --model.width=8 --model.heads=1 --model.batch=2 --model.time=12 --train.steps=2 ";
  const Ended first = run_in(folder, small), second = run_in(folder, small + "--train.lr=0.01");
  EXPECT_NE(first.out.find("written to runs/default,"), std::string::npos) << first.out << first.err;
  EXPECT_NE(second.out.find("written to runs/default-2,"), std::string::npos) << second.out << second.err;
  EXPECT_NE(second.err.find("runs/default holds another run"), std::string::npos) << second.err;
  EXPECT_NE(run_in(folder, small).err.find("runs/default is already finished"), std::string::npos);
  EXPECT_NE(run_in(folder, small + "--train.lr=0.01").err.find("runs/default-2 is already finished"),
            std::string::npos);
  EXPECT_NE(run_in(folder, small + "--train.lr=fast").err.find("expected a number"), std::string::npos);
  EXPECT_EQ(run_in(folder, small + "--train.lr=0.01 --out runs/default").code, 2) << "who names it, means it";
}

TEST(TrainProcess, SeedsAndSchemesAreShortForKeys) {
  const TemporaryFolder folder;
  const std::string small =
      "train --quiet --model.layers=1 --model.width=8 --model.heads=1 --model.batch=2 --model.time=12 --train.steps=2 ";
  EXPECT_EQ(run_in(folder, small + "--seeds 3 --scheme Post-LN --out run --json").code, 0);
  const nlohmann::json result = nlohmann::json::parse(test::read_file(folder / "run/result.json"));
  ASSERT_EQ(result.at("members").size(), 3U);
  EXPECT_EQ(result.at("members")[2].at("seed"), 3);
  const std::string config = test::read_file(folder / "run/config.toml");
  EXPECT_NE(config.find("seed = [1, 2, 3]"), std::string::npos) << config;
  EXPECT_NE(config.find("data_seed = [1, 2, 3]"), std::string::npos);
  EXPECT_EQ(run_in(folder, small + "--seeds 4,9 --out listed").code, 0);
  EXPECT_NE(test::read_file(folder / "listed/config.toml").find("seed = [4, 9]"), std::string::npos);
  EXPECT_EQ(run_in(folder, small + "--seeds 0").code, 2);
  const Ended sweep = run_in(folder,
                             "sweep --quiet --model.layers=1 --model.width=8 --model.heads=1 --model.batch=2 "
                             "--model.time=12 --train.steps=2 --schemes pre,post --seeds 2 --out grid");
  EXPECT_EQ(sweep.code, 0) << sweep.err;
  std::size_t runs = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder / "grid/runs")) ++runs;
  EXPECT_EQ(runs, 4U);
}

}  // namespace
}  // namespace norma
