// norma generate as a process: continuation, translation, judgement, mistakes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/process.h"
#include "norma/store/run_directory.h"

namespace norma {
namespace {

using nlohmann::json;
using test::Ended;
using test::TemporaryFolder;
namespace fs = std::filesystem;

std::vector<std::string> tiny(const std::string& out, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"train",
                                        "--out",
                                        out,
                                        "--quiet",
                                        "--model.layers=1",
                                        "--model.width=16",
                                        "--model.heads=2",
                                        "--model.batch=8",
                                        "--train.threads=1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string pairs() {
  const std::string words[] = {"one", "two", "three", "four", "five"}, others[] = {"un", "dos", "tri", "kvar", "pet"};
  std::string text;
  for (int i = 0; i < 400; ++i) {
    const int a = i % 5, b = i / 5 % 5, c = i / 25 % 5;
    text += fmt::format("{} {} {}\t{} {} {}\n", words[a], words[b], words[c], others[a], others[b], others[c]);
  }
  return text;
}

std::vector<std::string> translation(const TemporaryFolder& folder, const std::string& tokenizer) {
  return {"--model.family=encoder_decoder", "--model.time=24",
          "--data.task=translation",        "--data.path=" + (folder / "pairs.tsv"),
          "--data.tokenizer=" + tokenizer,  "--train.steps=30"};
}

TEST(GenerateProcess, ALanguageModelContinuesTextTheSameWayForTheSameSeed) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "abc abc. ";
  const std::string file = folder.write("text.txt", text), run = folder / "run";
  ASSERT_EQ(test::run(folder, tiny(run, {"--data.task=text", "--data.path=" + file, "--data.tokenizer=characters",
                                         "--model.time=16", "--train.steps=200", "--train.lr=1e-2"}))
                .code,
            0);
  const Ended greedy =
      test::run(folder, {"generate", run, "--prompt", "abc a", "--temperature", "0", "--tokens", "30"});
  ASSERT_EQ(greedy.code, 0) << greedy.err;
  EXPECT_EQ(greedy.out, "abc abc. abc abc. abc abc. abc abc.\n") << "30 characters after the prompt, beyond the window";
  const std::vector<std::string> drawn = {"generate", run,      "--prompt", "a",     "--temperature",
                                          "3",        "--seed", "5",        "--json"};
  const Ended first = test::run(folder, drawn), second = test::run(folder, drawn);
  EXPECT_EQ(first.out, second.out);
  const json result = json::parse(first.out);
  EXPECT_EQ(result["outputs"][0]["tokens"].size(), 200u);
  EXPECT_EQ(result["step"], 200);
  const std::string checkpoint = RunView(run).checkpoint_path(200).string();
  EXPECT_EQ(
      test::run(folder, {"generate", checkpoint, "--prompt", "abc a", "--temperature", "0", "--tokens", "30"}).out,
      greedy.out);
  EXPECT_EQ(test::run(folder, {"generate", run, "--tokens", "3"}).code, 0) << "begins by itself";
  const Ended unknown = test::run(folder, {"generate", run, "--prompt", "abc xyz"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("has no token for 'xyz'"), std::string::npos) << unknown.err;
}

TEST(GenerateProcess, ATranslatorKeepsItsTokenizerAndIsJudgedAsAtTheEndOfTraining) {
  const TemporaryFolder folder;
  folder.write("pairs.tsv", pairs());
  const std::string run = folder / "run";
  std::vector<std::string> more = translation(folder, "sentencepiece");
  more.insert(more.end(), {"--data.vocabulary=40", "--members.lr=[1e-3, 3e-3]"});
  ASSERT_EQ(test::run(folder, tiny(run, more)).code, 0);
  EXPECT_TRUE(fs::exists(fs::path(run) / "tokenizer.model"));
  const json trained = json::parse(RunView(run).result());
  const Ended judged = test::run(folder, {"generate", run, "--evaluate", "--member", "1", "--json"});
  ASSERT_EQ(judged.code, 0) << judged.err;
  const json scores = json::parse(judged.out)["scores"];
  EXPECT_EQ(scores, trained["members"][1]["scores"]);
  EXPECT_NE(scores, trained["members"][0]["scores"]);
  for (const char* name : {"loss", "accuracy", "row_accuracy", "bleu", "brevity_penalty"})
    EXPECT_TRUE(scores[name].is_number()) << name;

  const std::string lines = folder.write("lines.txt", "one two\nthree\n");
  const Ended both = test::run(folder, {"generate", run, "--source", lines, "--json"});
  ASSERT_EQ(both.code, 0) << both.err;
  const json outputs = json::parse(both.out)["outputs"];
  ASSERT_EQ(outputs.size(), 2u);
  const Ended alone = test::run(folder, {"generate", run, "--prompt", "three", "--json"});
  EXPECT_EQ(json::parse(alone.out)["outputs"][0]["tokens"], outputs[1]["tokens"]);
}

// Lines of all lengths in an order of no kind: each is said in its place, as soon as it and all before it are done.
TEST(GenerateProcess, LinesOfAFileAreSaidOneAfterAnother) {
  const TemporaryFolder folder;
  folder.write("pairs.tsv", pairs());
  const std::string run = folder / "run";
  ASSERT_EQ(test::run(folder, tiny(run, translation(folder, "words"))).code, 0);
  const std::string words[] = {"one", "two", "three", "four", "five"};
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    std::string line;
    for (int word = 0; word <= i * 7 % 3; ++word) line += (word > 0 ? " " : "") + words[(i + word) % 5];
    lines += line + "\n";
  }
  const Ended all = test::run(folder, {"generate", run, "--source", folder.write("lines.txt", lines)});
  ASSERT_EQ(all.code, 0) << all.err;
  std::istringstream asked(lines), said(all.out);
  std::string line, answer;
  for (int i = 0; std::getline(asked, line); ++i) {
    ASSERT_TRUE(std::getline(said, answer)) << i;
    if (i % 9 != 0) continue;
    EXPECT_EQ(test::run(folder, {"generate", run, "--prompt", line}).out, answer + "\n") << i;
  }
  EXPECT_FALSE(std::getline(said, answer));
}

TEST(GenerateProcess, MistakesExitWithTwoAndOneClearMessage) {
  const TemporaryFolder folder;
  folder.write("pairs.tsv", pairs());
  std::string labelled;
  for (int i = 0; i < 200; ++i)
    labelled += i % 2 == 0 ? fmt::format("up {}\tyes\n", i) : fmt::format("down {}\tno\n", i);
  const std::string labels = folder.write("labels.tsv", labelled), empty = folder.write("empty.txt", "");
  const std::string translator = folder / "translator", classifier = folder / "classifier",
                    grammar = folder / "grammar";
  ASSERT_EQ(test::run(folder, tiny(translator, translation(folder, "words"))).code, 0);
  ASSERT_EQ(test::run(folder, tiny(classifier, {"--model.family=encoder", "--data.task=classification",
                                                "--data.path=" + labels, "--model.time=12", "--train.steps=2"}))
                .code,
            0);
  ASSERT_EQ(test::run(folder, tiny(grammar, {"--model.time=12", "--train.steps=2"})).code, 0);
  const std::string bare = folder / "bare";
  fs::copy(grammar, bare, fs::copy_options::recursive);
  fs::remove_all(fs::path(bare) / "checkpoints");
  struct Mistake {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Mistake> mistakes = {
      {{}, "run is missing; expected norma generate run"},
      {{folder / "nowhere"}, "there is no run"},
      {{folder.path().string()}, "there is no config.toml"},
      {{bare}, "holds no checkpoint"},
      {{labels}, "labels.tsv"},
      {{classifier, "--prompt", "up"}, "classifier of 2 classes"},
      {{translator}, "--prompt"},
      {{translator, "--prompt", "one seven"}, "has no token for 'seven'"},
      {{translator, "--prompt", " "}, "is empty"},
      {{translator, "--prompt", std::string(2000, 'x')}, "has no token"},
      {{translator, "--source", empty}, "is empty"},
      {{translator, "--source", folder / "missing"}, "missing"},
      {{translator, "--prompt", "one", "--beam", "0"}, "a beam of 0"},
      {{translator, "--prompt", "one", "--beam", "2", "--temperature", "1"}, "were given; expected one of them"},
      {{translator, "--prompt", "one", "--evaluate"}, "were given; expected one of them"},
      {{translator, "--prompt", "one", "--member", "3"}, "has no member 3"},
      {{translator, "--prompt", "one", "--tokens", "0"}, "at most 0 tokens"},
      {{grammar, "--prompt", "word"}, "'word' is not a token"},
      {{grammar, "--prompt", "1 2 99999"}, "'99999' is not a token"},
      {{grammar, "--temperature", "-1"}, "temperature of -1"},
  };
  for (const Mistake& mistake : mistakes) {
    std::vector<std::string> arguments = {"generate"};
    arguments.insert(arguments.end(), mistake.arguments.begin(), mistake.arguments.end());
    const Ended outcome = test::run(folder, arguments);
    EXPECT_EQ(outcome.code, 2) << fmt::format("{}: {}", fmt::join(arguments, " "), outcome.err);
    EXPECT_NE(outcome.err.find(mistake.message), std::string::npos)
        << fmt::format("{}\n  said: {}\n  expected: {}", fmt::join(arguments, " "), outcome.err, mistake.message);
  }
  EXPECT_EQ(test::run(folder, {"generate", classifier, "--evaluate"}).code, 0);
  EXPECT_EQ(test::run(folder, {"generate", grammar, "--prompt", "1 2"}).code, 0);
}

}  // namespace
}  // namespace norma
