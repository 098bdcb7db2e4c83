// Mistakes of those who call norma train: one clear message each, and nothing is written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/process.h"

namespace norma {
namespace {

using test::Outcome;
using test::TemporaryFolder;
namespace fs = std::filesystem;

struct Mistake {
  std::vector<std::string> arguments;
  std::string message;
};

TEST(TrainProcess, MistakesExitWithTwoAndOneClearMessage) {
  const TemporaryFolder folder;
  const std::string empty = folder.write("empty.txt", ""), config = folder.write("bad.toml", "[train]\nlrr = 1\n");
  const std::string binary = folder.write("binary.txt", std::string("ab\0cd", 5) + std::string(5000, 'x'));
  const std::string occupied = folder.write("file", "not a folder");
  const std::vector<Mistake> mistakes = {
      {{"train", "nowhere.toml"}, "there is no file 'nowhere.toml'"},
      {{"train", config}, "did you mean 'train.lr'?"},
      {{"train", "--train.lr=fast"}, "'fast' was given; expected a number"},
      {{"train", "--train.rl=1"}, "there is no key 'train.rl'"},
      {{"train", "--model.scheme=norm(x + g(x))"}, "there is no function 'g'"},
      {{"train", "--model.scheme=norm(x + "}, "^"},
      {{"train", "--model.heads=7"}, "not divisible by 7 heads"},
      {{"train", "--model.layers=0"}, "expected a whole number from 1"},
      {{"train", "--data.task=text"}, "data.path"},
      {{"train", "--data.task=text", "--data.path=" + empty}, "is empty"},
      {{"train", "--data.task=text", "--data.path=" + binary}, "NUL"},
      {{"train", "--data.task=text", "--data.path=" + (folder / "missing")}, "No such file"},
      {{"train", "--model.family=encoder", "--data.task=grammar"}, "expected for it one of masked_grammar"},
      {{"train", "--model.family=encoder_decoder", "--data.task=text", "--data.path=nowhere"}, "suits model.family"},
      {{"plan", "--model.family=encoder", "--data.task=hops"}, "expected for it one of masked_grammar"},
      {{"train", "--data.task=masked"}, "suits model.family = \"encoder\"; \"decoder\" was given"},
      {{"train", "--model.vocabulary=3"}, "3"},
      {{"train", "--model.width=100000", "--model.layers=1000"}, "the plan needs"},
      {{"train", "--out", occupied}, "file"},
      {{"train", "--out", "/proc/norma"}, "/proc/norma"},
      {{"train", "--surplus"}, "'--surplus' is not an option"},
      {{"tarin"}, "did you mean 'train'?"},
  };
  for (const Mistake& mistake : mistakes) {
    std::vector<std::string> arguments = mistake.arguments;
    if (arguments[0] == "train" && std::find(arguments.begin(), arguments.end(), "--out") == arguments.end()) {
      arguments.push_back("--out");
      arguments.push_back(folder / "never");
    }
    const Outcome outcome = test::run(folder, arguments);
    EXPECT_EQ(outcome.code, 2) << fmt::format("{}: {}", fmt::join(arguments, " "), outcome.err);
    EXPECT_NE(outcome.err.find(mistake.message), std::string::npos)
        << fmt::format("{}\n  said: {}\n  expected: {}", fmt::join(arguments, " "), outcome.err, mistake.message);
    EXPECT_FALSE(fs::exists(folder / "never"))
        << "nothing is written for " << fmt::format("{}", fmt::join(arguments, " "));
  }
}

}  // namespace
}  // namespace norma
