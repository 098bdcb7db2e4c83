// Completion as zsh and fish themselves do it; skipped where they are not installed. That of bash is in
// interface_test.cpp.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <sstream>

#include "cli/process.h"
#include "places.h"

namespace norma {
namespace {

using test::TemporaryFolder;

bool is_there(const std::string& program) {
  return std::system(fmt::format("command -v {} > /dev/null 2>&1", program).c_str()) == 0;
}

// The first words of what a command prints, sorted.
std::vector<std::string> words_of(const TemporaryFolder& folder, const std::string& command) {
  const std::string out = folder / "offered";
  const int status = std::system(fmt::format("cd '{}' && {} > '{}'", folder / ".", command, out).c_str());
  EXPECT_TRUE(WIFEXITED(status)) << command;
  std::istringstream lines(test::read_file(out));
  std::vector<std::string> words;
  for (std::string line; std::getline(lines, line);) words.push_back(line.substr(0, line.find('\t')));
  std::sort(words.begin(), words.end());
  return words;
}

using Words = std::vector<std::string>;

// The same questions to both shells.
template <typename Offered>
void expect_candidates(const TemporaryFolder& folder, Offered offered) {
  folder.write("mine.toml", "");
  EXPECT_EQ(offered("norma tr"), Words{"train"});
  EXPECT_EQ(offered("norma train --print"), Words{"--print-config"});
  EXPECT_EQ(offered("norma train --train.warm"), Words{"--train.warmup"});
  EXPECT_EQ(offered("norma train --device c"), (Words{"cpu", "cuda"}));
  EXPECT_EQ(offered("norma inspect --scheme deepn"), Words{"deepnorm"});
  EXPECT_EQ(offered("norma schemes deepn"), Words{"deepnorm"});
  EXPECT_EQ(offered("norma train min"), Words{"mine.toml"});
  EXPECT_EQ(offered("norma completion z"), Words{"zsh"});
  EXPECT_EQ(offered("norma bench --train."), Words{}) << "bench takes no keys";
}

void write_script(const TemporaryFolder& folder, const std::string& shell, const std::string& name) {
  const test::Ended printed = test::run(folder, {"completion", shell});
  ASSERT_EQ(printed.code, 0) << printed.err;
  folder.write(name, printed.out);
}

TEST(Completion, Fish) {
  if (!is_there("fish")) GTEST_SKIP() << "there is no fish";
  const TemporaryFolder folder;
  write_script(folder, "fish", "norma.fish");
  setenv("HOME", folder.path().c_str(), 1);  // it writes a history there
  expect_candidates(folder, [&](const std::string& line) {
    return words_of(folder, fmt::format("fish --no-config -c \"source norma.fish; complete -C '{}'\"", line));
  });
}

TEST(Completion, Zsh) {
  if (!is_there("zsh")) GTEST_SKIP() << "there is no zsh";
  const TemporaryFolder folder;
  write_script(folder, "zsh", "_norma");
  const std::string script = std::string(test::kSourceFolder) + "/tests/cli/complete.zsh";
  if (words_of(folder, "zsh -f -c 'zmodload zsh/zpty && print yes'") != Words{"yes"})
    GTEST_SKIP() << "this zsh has no terminals to give";
  expect_candidates(folder, [&](const std::string& line) {
    return words_of(folder, fmt::format("zsh -f {} '{}' '{}'", script, folder.path().string(), line));
  });
}

}  // namespace
}  // namespace norma
