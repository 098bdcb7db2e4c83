// No line is wider than the terminal, whatever a verb has to say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/process.h"

namespace norma {
namespace {

using test::Ended;
using test::TemporaryFolder;

std::size_t code_points(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

void expect_within(const std::string& text, std::size_t columns) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(code_points(line), columns) << line;
}

TEST(Width, NoVerbPrintsBeyondTheTerminal) {
  const TemporaryFolder folder;
  const std::vector<std::string> small = {"--model.layers=2", "--model.width=16", "--model.heads=2", "--model.batch=2",
                                          "--model.time=12"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), small.begin(), small.end());
    return arguments;
  };
  for (const std::size_t columns : {std::size_t{60}, std::size_t{80}}) {
    const std::string n = std::to_string(columns);
    const std::vector<std::vector<std::string>> commands = {
        {"schemes"},
        {"schemes", "deepnorm", "--width", "32", "--heads", "2", "--theory-width", "32"},
        with({"plan"}),
        with({"train", "--seeds", "3", "--train.steps=4", "--out", folder / ("run" + n)}),
        with({"sweep", "--train.steps=4", "--train.lr=[1e-4,1e-3,1e-2,1e-1]", "--train.warmup=[0,2]", "--schemes",
              "pre", "post", "--out", folder / ("sweep" + n)}),
        with({"study", "pre", "post", "--depths", "2,4", "--steps", "4", "--budget", "0", "--lr", "1e-3,1e-2", "--out",
              folder / ("study" + n)}),
        {"inspect", "pre", "norm(x + f(norm(x)))", "--depths", "2,3,4,6,8,10", "--width", "16", "--heads", "2",
         "--time", "8", "--seeds", "2", "--only", "gradient,stream,depth", "--task", "grammar"},
    };
    setenv("COLUMNS", n.c_str(), 1);
    for (const std::vector<std::string>& command : commands) {
      SCOPED_TRACE(fmt::format("COLUMNS={} {}", n, fmt::join(command, " ")));
      const Ended ended = test::run(folder, command);
      EXPECT_EQ(ended.code, 0) << ended.err;
      EXPECT_FALSE(ended.out.empty());
      expect_within(ended.out, columns);
      expect_within(ended.err, columns);
    }
    const std::vector<std::vector<std::string>> mistakes = {
        {"train", "--model.layers=0"},
        {"sample", folder / ("run" + n)},
        {"plot", folder / ("sweep" + n), "--figure", "none", "--out", folder / "none.svg"},
        {"inspect", "pre", "--only", "none"}};
    for (const std::vector<std::string>& command : mistakes) {
      SCOPED_TRACE(fmt::format("COLUMNS={} {}", n, fmt::join(command, " ")));
      const Ended ended = test::run(folder, command);
      EXPECT_EQ(ended.code, 2) << ended.err;
      expect_within(ended.err, columns);
    }
    // Where a caret points is not broken.
    const std::string long_formula = "x + f(norm(x))/sqrt(l) + unknown*f(norm(x)) + 0*x + 0*x";
    EXPECT_NE(test::run(folder, {"schemes", long_formula}).err.find("unknown*f(norm(x))"), std::string::npos);
    unsetenv("COLUMNS");
  }
}

}  // namespace
}  // namespace norma
