// Help, shell completion and the manual, which are made from one table; and a configuration to begin with.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "cli/process.h"
#include "norma/train/config.h"

namespace norma {
namespace {

using test::Ended;
using test::TemporaryFolder;

std::string printed(const TemporaryFolder& folder, const std::vector<std::string>& arguments) {
  const Ended ended = test::run(folder, arguments);
  EXPECT_EQ(ended.code, 0) << ended.err;
  return ended.out;
}

// What stands at the beginning of the lines behind "Verbs:".
std::vector<std::string> verbs(const TemporaryFolder& folder) {
  std::istringstream lines(printed(folder, {"--help"}));
  std::vector<std::string> names;
  bool listed = false;
  for (std::string line; std::getline(lines, line);) {
    if (listed && line.empty()) break;
    if (listed && line.size() > 2 && line[2] != ' ') names.push_back(line.substr(2, line.find(' ', 2) - 2));
    listed = listed || line == "Verbs:";
  }
  return names;
}

std::set<std::string> options(const std::string& help) {
  std::set<std::string> names;
  for (std::size_t at = 0; (at = help.find("\n  -", at)) != std::string::npos;) {
    at += 3;
    std::istringstream heading(help.substr(at, std::min(help.find('\n', at), help.find(' ', at)) - at));
    for (std::string name; std::getline(heading, name, ',');) names.insert(name);
  }
  return names;
}

std::string without_hyphen_marks(std::string text) {
  for (std::size_t at = 0; (at = text.find("\\-", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

// docs/cuda.md: it works in every verb that runs a model.
TEST(Interface, EveryVerbThatRunsAModelSaysWhere) {
  const TemporaryFolder folder;
  for (const char* verb : {"train", "sweep", "study", "plan", "check", "init", "inspect", "diagnose", "predict",
                           "generate", "sample", "bench"}) {
    const Ended help = test::run(folder, {verb, "--help"});
    EXPECT_NE(help.out.find("--device auto|cpu|cuda"), std::string::npos) << verb << "\n" << help.out;
  }
}

TEST(Interface, CompletionsAndTheManualNameEveryVerbAndOption) {
  const TemporaryFolder folder;
  const std::string man = without_hyphen_marks(printed(folder, {"man"}));
  std::vector<std::string> scripts;
  for (const char* shell : {"bash", "zsh", "fish"}) scripts.push_back(printed(folder, {"completion", shell}));
  const std::vector<std::string> all = verbs(folder);
  ASSERT_GE(all.size(), 12U);
  for (const std::string& verb : all) {
    const std::set<std::string> known = options(printed(folder, {verb, "--help"}));
    EXPECT_TRUE(known.contains("--help")) << verb;
    EXPECT_NE(man.find("\n.SS " + verb + "\n"), std::string::npos) << verb;
    for (const std::string& option : known) {
      if (option == "--help" || option == "-h") continue;
      SCOPED_TRACE(verb + " " + option);
      EXPECT_NE(man.find(option), std::string::npos);
      EXPECT_NE(scripts[0].find(option), std::string::npos);
      EXPECT_NE(scripts[1].find(option), std::string::npos);
      EXPECT_NE(scripts[2].find(" -l " + option.substr(2) + " "), std::string::npos);
    }
  }
  for (const ConfigKey& key : config_keys(RunConfig())) {
    EXPECT_NE(man.find(key.name), std::string::npos);
    for (const std::string& script : scripts) EXPECT_NE(script.find(key.name), std::string::npos) << key.name;
  }
}

// What bash offers for a line, of which the last word is still being written.
std::string offered(const TemporaryFolder& folder, const std::string& words) {
  folder.write("completion.bash", printed(folder, {"completion", "bash"}));
  const std::string out = folder / "offered";
  const std::string command = fmt::format(
      "cd '{0}' && bash -c 'source completion.bash; COMP_WORDS=({1}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); "
      "_norma; printf \"%s \" \"${{COMPREPLY[@]}}\"' > '{2}'",
      folder / ".", words, out);
  EXPECT_EQ(std::system(command.c_str()), 0);
  return test::read_file(out);
}

TEST(Interface, BashCompletesVerbsOptionsKeysSchemesAndFiles) {
  const TemporaryFolder folder;
  folder.write("mine.toml", "");
  EXPECT_EQ(offered(folder, "norma tr"), "train ");
  EXPECT_EQ(offered(folder, "norma train --print"), "--print-config ");
  EXPECT_EQ(offered(folder, "norma train --train.warm"), "--train.warmup= ");
  EXPECT_EQ(offered(folder, "norma train --device c"), "cpu cuda ");
  EXPECT_EQ(offered(folder, "norma inspect --scheme deepn"), "deepnorm ");
  EXPECT_EQ(offered(folder, "norma train min"), "mine.toml ");
  EXPECT_EQ(offered(folder, "norma completion z"), "zsh ");
  EXPECT_EQ(offered(folder, "norma bench --train."), " ");
}

TEST(Interface, HelpIsNoWiderThanTheTerminal) {
  const TemporaryFolder folder;
  for (const char* columns : {"60", "80"}) {
    setenv("COLUMNS", columns, 1);
    std::vector<std::vector<std::string>> pages = {{"--help"}};
    for (const std::string& verb : verbs(folder)) pages.push_back({verb, "--help"});
    for (const std::vector<std::string>& page : pages) {
      std::istringstream lines(printed(folder, page));
      for (std::string line; std::getline(lines, line);)
        EXPECT_LE(line.size(), std::stoul(columns)) << fmt::format("{}\n{}", fmt::join(page, " "), line);
    }
    unsetenv("COLUMNS");
  }
}

// The configuration that a file holds, as TOML; with `all` also of its commented lines.
RunConfig loaded(const std::string& text, bool all) {
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const bool value = line.starts_with("# ") && line.find(" = ") != std::string::npos && line[2] != '[';
    kept += (all && value ? line.substr(2) : line) + "\n";
  }
  return parse_config(kept, "run.toml");
}

TEST(Interface, InitWritesAConfigurationThatSaysTheDefaults) {
  const TemporaryFolder folder;
  const std::string file = folder / "run.toml";
  const Ended made = test::run(folder, {"init", file});
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string text = test::read_file(file);
  for (const bool all : {false, true}) EXPECT_EQ(print_config(loaded(text, all)), print_config(RunConfig()));
  for (const ConfigKey& key : config_keys(RunConfig()))
    EXPECT_NE(text.find(key.name.substr(key.name.rfind('.') + 1) + " = "), std::string::npos) << key.name;
  EXPECT_NE(text.find("\nlr = 0.001"), std::string::npos) << "what every run sets is not commented out\n" << text;
  EXPECT_NE(text.find("\n# clip = "), std::string::npos);

  const Ended again = test::run(folder, {"init", file});
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("--force"), std::string::npos) << again.err;
}

TEST(Interface, InitSetsTheKeysThatAreGiven) {
  const TemporaryFolder folder;
  const std::vector<std::string> keys = {"--train.clip=0.5", "--model.scheme=deepnorm", "--data.path=book.txt",
                                         "--model.constants.alpha=2"};
  std::vector<std::string> arguments = {"init", "-"};
  arguments.insert(arguments.end(), keys.begin(), keys.end());
  RunConfig wanted;
  for (const std::string& key : keys) override_config(wanted, key.substr(2));
  EXPECT_EQ(print_config(loaded(printed(folder, arguments), false)), print_config(wanted));
  EXPECT_EQ(test::run(folder, {"init", "-", "--train.clap=1"}).code, 2);
}

TEST(Interface, WhatAVerbDoesNotTakeIsNamed) {
  const TemporaryFolder folder;
  const std::pair<std::vector<std::string>, std::string> mistakes[] = {
      {{"generate", "run", "--promt", "a"},
       "norma: '--promt' is not an option of norma generate (did you mean '--prompt'?); --help says what it takes\n"},
      {{"diagnose", "a", "b"}, "norma: norma diagnose takes no 'b'; --help says what it takes\n"},
      {{"study", "--lr", "abc"}, "norma: --lr: 'abc' was given; expected a number\n"},
      {{"inspect", "--width", "abc"}, "norma: --width: 'abc' was given; expected a whole number from 1 to 65536\n"},
      {{"inspect", "--width=-1"}, "norma: --width: '-1' was given; expected a whole number from 1 to 65536\n"},
      {{"study", "--for-layers", "0"},
       "norma: --for-layers: '0' was given; expected a whole number from 1 to 1000000\n"},
      {{"inspect", "--width", "8", "--width", "9"}, "norma: --width is given 2 times; expected once\n"},
      {{"inspect", "--text="}, "norma: --text has no value; expected FILE\n"},
      {{"bench", "--seconds", "0"}, "norma: --seconds: '0' was given; expected a number from 0.001 to 600\n"},
      {{"--verison"},
       "norma: norma has no option '--verison' (did you mean '--version'?); norma --help lists its verbs\n"},
      {{"inspect", "--quiet=maybe"}, "norma: --quiet: 'maybe' was given; expected no value\n"},
      {{"train", "--config", "a.toml"},
       "norma: '--config' is not an option; write the config by itself, as in norma train config.toml\n"},
      {{"completion", "tcsh"}, "norma: shell: 'tcsh' was given; expected bash, zsh or fish\n"},
      {{"diagnose"}, "norma: run is missing; expected norma diagnose run [options]\n"},
      {{"generate", "r", "--seed=-1"},
       "norma: --seed: '-1' was given; expected a whole number from 0 to 1000000000000\n"},
      {{"generate", "r", "--threads=-1"}, "norma: --threads: '-1' was given; expected a whole number from 0 to 4096\n"},
      {{"generate", "r", "--prompt", "a", "--evaluate"},
       "norma: --prompt and --evaluate were given; expected one of them\n"}};
  for (const auto& [arguments, words] : mistakes) {
    const Ended ended = test::run(folder, arguments);
    EXPECT_EQ(ended.code, 2);
    EXPECT_EQ(ended.err, words);
  }
}

TEST(Interface, HelpIsAWordAsWell) {
  const TemporaryFolder folder;
  EXPECT_EQ(printed(folder, {"help"}), printed(folder, {"--help"}));
  EXPECT_EQ(printed(folder, {"help", "train"}), printed(folder, {"train", "--help"}));
  EXPECT_EQ(test::run(folder, {"help", "trian"}).code, 2);
}

}  // namespace
}  // namespace norma
