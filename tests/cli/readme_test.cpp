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

}  // namespace
}  // namespace norma
