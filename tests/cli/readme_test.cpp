// The README's examples, as they are printed: each one runs, on files that exist. Only their sizes are small here.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "cli/process.h"
#include "places.h"

namespace norma {
namespace {

using test::TemporaryFolder;

// Lines of the block that begin with "norma "; what a command does stands two or more spaces behind it.
std::vector<std::string> readme_commands() {
  std::istringstream lines(test::read_file(std::string(test::kSourceFolder) + "/README.md"));
  std::vector<std::string> commands;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("norma ")) commands.push_back(line.substr(0, line.find("  ")));
  }
  return commands;
}

std::string verb_of(const std::string& command) {
  return command.substr(6, command.find(' ', 6) == std::string::npos ? std::string::npos : command.find(' ', 6) - 6);
}

TEST(Readme, EveryExampleRuns) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(std::string(test::kSourceFolder) + "/README.md", folder / "README.md");
  const std::string model =
      " --model.layers=1 --model.width=16 --model.heads=2 --model.batch=2 --model.time=16 --train.steps=4";
  const std::map<std::string, std::string> smaller = {
      {"schemes", " --width 32 --heads 2 --layers 4 --theory-width 32"},
      {"inspect", " --width 16 --heads 2 --time 8 --seeds 1 --batches 1"},
      {"init", ""},
      {"plan", model},
      {"check", model},
      {"train", model},
      {"diagnose", ""},
      {"compare", ""},
      {"runs", ""},
      {"generate", " --tokens 5"},
      {"sample", " --steps 2 --count 4"},
      {"sweep", model},
      {"study", model + " --depths 2,4 --steps 4 --budget 0 --lr 1e-3"},
      {"bench", " --only limits --seconds 0.01"}};
  const std::vector<std::string> commands = readme_commands();
  ASSERT_GE(commands.size(), 10U);
  std::map<std::string, int> seen;
  for (const std::string& command : commands) {
    const std::string verb = verb_of(command);
    ++seen[verb];
    ASSERT_TRUE(smaller.contains(verb)) << command;
    const std::string line = "cd '" + (folder / ".") + "' && '" + test::kProgram + "' " + command.substr(6) +
                             smaller.at(verb) + " > out.txt 2> err.txt";
    const int status = std::system(line.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << line << "\n" << test::read_file(folder / "err.txt");
    EXPECT_FALSE(test::read_file(folder / "out.txt").empty()) << command;
  }
  for (const auto& [verb, arguments] : smaller) EXPECT_GT(seen[verb], 0) << verb << " has no example";
}

// Words of a text, so that lines may be broken elsewhere.
std::string one_spaced(const std::string& text) {
  std::istringstream words(text);
  std::string all;
  for (std::string word; words >> word;) all += (all.empty() ? "" : " ") + word;
  return all;
}

// The sample is trimmed: every part of it between empty lines, and up to "...", stands in what the command prints.
TEST(Readme, TheSampleIsWhatTheCommandPrints) {
  const TemporaryFolder folder;
  const std::string readme = test::read_file(std::string(test::kSourceFolder) + "/README.md");
  const std::size_t begin = readme.find("$ norma "), line_end = readme.find('\n', begin);
  ASSERT_NE(begin, std::string::npos);
  const std::string command = readme.substr(begin + 8, line_end - begin - 8);
  const std::string sample = readme.substr(line_end + 1, readme.find("\n```", line_end) - line_end - 1);
  const std::string line = std::string("'") + test::kProgram + "' " + command + " > '" + (folder / "out.txt") + "'";
  ASSERT_EQ(std::system(line.c_str()), 0) << line;
  const std::string printed = one_spaced(test::read_file(folder / "out.txt"));
  std::istringstream lines(sample);
  std::string part;
  int parts = 0;
  const auto check = [&] {
    if (part.empty()) return;
    ++parts;
    EXPECT_NE(printed.find(part), std::string::npos) << part;
    part.clear();
  };
  for (std::string text; std::getline(lines, text);) {
    const std::size_t trimmed = text.find(" ...");
    if (text.empty()) check();
    part = one_spaced(part + " " + text.substr(0, trimmed));
    if (trimmed != std::string::npos) check();
  }
  check();
  EXPECT_GE(parts, 3);
}

}  // namespace
}  // namespace norma
