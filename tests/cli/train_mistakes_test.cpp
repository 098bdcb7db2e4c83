// Mistakes of those who call norma train: one clear message each, and nothing is written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/process.h"

namespace norma {
namespace {

using test::Ended;
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
      {{"train", "Pre-LN"}, "there is no file 'Pre-LN'; a scheme is given with its option: --scheme Pre-LN\n"},
      {{"train", "norm(x + f(x))"}, "a scheme is given with its option: --scheme \"norm(x + f(x))\"\n"},
      {{"train", config}, "did you mean 'train.lr'?"},
      {{"train", "--train.lr=fast"}, "'fast' was given; expected a number"},
      {{"train", "--train.rl=1"}, "there is no key 'train.rl'"},
      {{"train", "--model.scheme=norm(x + g(x))"}, "there is no function 'g'"},
      {{"train", "--model.scheme=norm(x + "}, "^"},
      {{"train", "--model.scheme=y = norm(x); x + f(x)"}, "nothing reads this 'y'"},
      {{"train", "--model.scheme=x + sg(f(norm(x)))"}, "cannot be trained"},
      {{"train", "--model.heads=7"}, "not divisible by 7 heads"},
      {{"train", "--model.family=unet", "--model.scheme=unet", "--model.width=16", "--model.norm_groups=16"},
       "would be over single numbers"},
      {{"train", "--model.family=unet", "--model.scheme=unet", "--data.task=shapes", "--model.sizes.attention=7"},
       "model.sizes.attention is 7, but no level has images of that height; expected one of 16, 8, 4"},
      {{"train", "--model.family=unet", "--model.scheme=unet", "--model.sizes.middle=2"},
       "model.sizes.middle: the family unet has no such size; expected"},
      {{"train", "--family", "gcn", "--model.batch=2"},
       "model.batch is 2, but a model of the family gcn reads a whole graph and says the class of each node: its batch "
       "is 1"},
      {{"train", "--model.batch=16", "--model.family=gcn"}, "model.batch is 16, but a model of the family gcn"},
      {{"train", folder.write("gcn.toml", "[model]\nfamily = \"gcn\"\nbatch = 16\n")}, "model.batch is 16, but"},
      {{"sweep", "--family", "gcn", "--model.batch=2", "--out", folder / "never"}, "model.batch is 2, but"},
      {{"study", "--family", "gcn", "--model.batch=2", "--out", folder / "never"}, "model.batch is 2, but"},
      {{"plan", "--family", "gcn", "--model.batch=2"}, "model.batch is 2, but"},
      {{"inspect", "--family", "gcn", "--batch", "2"}, "--batch is 2, but a model of the family gcn"},
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
      {{"train", "--lr", "3e-4"}, "'--lr' is not an option; write --train.lr=VALUE"},
      {{"train", "--device", "gpu"}, "unknown device 'gpu'; expected auto, cpu or cuda"},
      {{"tarin"}, "did you mean 'train'?"},
  };
  for (const Mistake& mistake : mistakes) {
    std::vector<std::string> arguments = mistake.arguments;
    if (arguments[0] == "train" && std::find(arguments.begin(), arguments.end(), "--out") == arguments.end()) {
      arguments.push_back("--out");
      arguments.push_back(folder / "never");
    }
    const Ended outcome = test::run(folder, arguments);
    EXPECT_EQ(outcome.code, 2) << fmt::format("{}: {}", fmt::join(arguments, " "), outcome.err);
    EXPECT_NE(outcome.err.find(mistake.message), std::string::npos)
        << fmt::format("{}\n  said: {}\n  expected: {}", fmt::join(arguments, " "), outcome.err, mistake.message);
    EXPECT_FALSE(fs::exists(folder / "never"))
        << "nothing is written for " << fmt::format("{}", fmt::join(arguments, " "));
  }
}

// Places that no run can have: a mistake of who gave them, not of norma.
TEST(TrainMistakes, DirectoriesThatCannotBeAreMistakes) {
  const TemporaryFolder folder;
  fs::create_symlink("loop", folder / "loop");
  folder.write("file", "x");
  fs::create_directories(folder / "sealed/inside");
  fs::permissions(folder / "sealed", fs::perms::none);
  const std::vector<std::pair<std::string, std::string>> places = {
      {folder / "loop", "symbolic links"},
      {folder / "loop/run", "symbolic links"},
      {folder / std::string(300, 'x'), "File name too long"},
      {folder / std::string(5000, 'x'), "File name too long"},
      {folder / "file", "file"},
      {folder / "file/run", "file"},
      {"/proc/norma", "/proc/norma"},
      {folder / "sealed/inside", "Permission denied"},
      {folder / "sealed/run", "Permission denied"},
  };
  for (const auto& [place, message] : places) {
    if (message == "Permission denied" && ::geteuid() == 0) continue;  // which root has
    for (const std::string verb : {"train", "sweep", "study"}) {
      std::vector<std::string> arguments = {verb, "--out", place, "--quiet", "--train.steps=2"};
      if (verb == "sweep") arguments.emplace_back("--train.lr=[1,2]");
      if (verb == "study") arguments.insert(arguments.end(), {"--no-inspect", "--budget", "0", "--schemes", "pre"});
      const Ended outcome = test::run(folder, arguments);
      EXPECT_EQ(outcome.code, 2) << verb << " " << place << ": " << outcome.err;
      EXPECT_NE(outcome.err.find(message), std::string::npos) << verb << " " << place << ": " << outcome.err;
    }
    for (const std::vector<std::string>& reader : {std::vector<std::string>{"generate", place},
                                                   {"inspect", "--run", place},
                                                   {"sweep", "--report", "--train.lr=[1,2]", "--out", place}}) {
      const Ended outcome = test::run(folder, reader);
      EXPECT_EQ(outcome.code, 2) << reader[0] << " " << place << ": " << outcome.err;
    }
  }
  fs::permissions(folder / "sealed", fs::perms::owner_all);
}

}  // namespace
}  // namespace norma
