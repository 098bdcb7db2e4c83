// What norma says when its output cannot be written.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "cli/process.h"
#include "places.h"

namespace norma {
namespace {

using test::TemporaryFolder;

// `norma <arguments>` under a shell, with redirections; stderr goes to a file.
struct Shell {
  int code = -1;
  std::string err;
};

Shell shell(const TemporaryFolder& folder, const std::string& arguments) {
  const std::string err = folder / "shell.err";
  const std::string command = std::string("{ ") + test::kProgram + " " + arguments + "; } 2> '" + err + "'";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, test::read_file(err)};
}

TEST(Output, ADiskThatIsFullIsAnError) {
  const TemporaryFolder folder;
  for (const char* arguments : {"schemes pre --width 64 --json", "schemes", "schemes --json", "--help"}) {
    SCOPED_TRACE(arguments);
    const Shell full = shell(folder, std::string(arguments) + " > /dev/full");
    EXPECT_EQ(full.code, 2);
    EXPECT_EQ(full.err, "norma: cannot write the output: No space left on device\n");
    const Shell closed = shell(folder, std::string(arguments) + " >&-");
    EXPECT_EQ(closed.code, 2);
    EXPECT_EQ(closed.err, "norma: cannot write the output: Bad file descriptor\n");
  }
}

TEST(Output, NothingPrintedLandsInAFileThatIsWritten) {
  const TemporaryFolder folder;
  shell(folder, "schemes pre --svg '" + (folder / "block.svg") + "' >&-");
  const std::string svg = test::read_file(folder / "block.svg");
  EXPECT_EQ(svg.find("Pre-LN of"), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n")) << svg.substr(svg.size() < 80 ? 0 : svg.size() - 80);
}

TEST(Output, AReaderThatHasSeenEnoughIsNoError) {
  const TemporaryFolder folder;
  EXPECT_EQ(shell(folder, "schemes | head -1 > /dev/null").err, "");
  EXPECT_EQ(shell(folder, "schemes --json | head -1 > /dev/null").err, "");
  // Also where the signal is ignored and writing fails instead.
  const std::string err = folder / "ignored.err";
  const std::string command =
      std::string("trap '' PIPE; { ") + test::kProgram + " schemes --json 2> '" + err + "'; } | head -1 > /dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(test::read_file(err), "");
}

const std::string kRun =
    "train --model.layers=2 --model.width=16 --model.heads=2 --model.batch=4 --model.time=12 --train.steps=12 "
    "--train.checkpoint_every=4 --out '";

// Every file of a run, with nothing in it that was meant for a terminal.
void expect_clean(const std::string& run) {
  EXPECT_TRUE(std::filesystem::exists(run + "/DONE"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    if (!entry.is_regular_file()) continue;
    const std::string text = test::read_file(entry.path());
    EXPECT_EQ(text.find("tok/s"), std::string::npos) << entry.path();
  }
  std::istringstream metrics(test::read_file(run + "/metrics.jsonl"));
  int lines = 0;
  for (std::string line; std::getline(metrics, line); ++lines) EXPECT_TRUE(line.starts_with('{')) << line;
  EXPECT_GE(lines, 2);
}

TEST(Output, NoChannelHarmsARun) {
  const TemporaryFolder folder;
  int number = 0;
  for (const char* channels : {"0<&- 2>&-", "2>&-", "0<&- 1>/dev/null 2>&-", "2>/dev/full", "0<&- 1>&- 2>&-",
                               "2>&1 >/dev/null | true", "2>&1 | head -c 1 >/dev/null"}) {
    SCOPED_TRACE(channels);
    const std::string run = folder / ("run" + std::to_string(number++));
    const Shell ended = shell(folder, kRun + run + "' " + channels);
    // What a closed standard output could not take is said at the end.
    const bool refused = std::string_view(channels).find("1>&-") != std::string_view::npos;
    EXPECT_EQ(ended.code, refused ? 2 : 0);
    expect_clean(run);
  }
}

TEST(Output, ResultsThatCannotBePrintedAreStored) {
  const TemporaryFolder folder;
  EXPECT_EQ(shell(folder, kRun + (folder / "run") + "' --json --quiet > /dev/full").code, 2);
  EXPECT_TRUE(std::filesystem::exists(folder / "run/DONE"));
  const std::string small = " --quiet --model.layers=1 --model.width=8 --model.heads=1 --model.batch=2 --model.time=12";
  EXPECT_EQ(shell(folder, "sweep" + small + " --train.steps=2 --train.lr=[1e-3,1e-2] --out '" + (folder / "sweep") +
                              "' > /dev/full")
                .code,
            2);
  EXPECT_TRUE(std::filesystem::exists(folder / "sweep/results.json"));
}

TEST(Output, WhatATerminalWouldObeyIsSpelledOut) {
  const TemporaryFolder folder;
  folder.write("loud.toml",
               "title = \"\\u001b[31mred\\u001b[0m \\u009b2J\"\nsource = \"\\rover\"\nsublayer = \"x + f(norm(x))\"\n");
  folder.write("worse.toml", "title = 1\n\"\\u001b[5m\" = 2\n");
  for (const std::string& arguments : {"schemes --schemes-dir '" + (folder / ".") + "'",
                                       "schemes '" + (folder / "loud.toml") + "' --width 32 --heads 2",
                                       "schemes '" + (folder / "loud.toml") + "' --width 32 --heads 2 --json",
                                       "schemes '" + (folder / "worse.toml") + "'"}) {
    SCOPED_TRACE(arguments);
    const std::string err = shell(folder, arguments + " > '" + (folder / "out") + "'").err;
    for (const std::string& text : {test::read_file(folder / "out"), err}) {
      for (const char* raw : {"\x1b", "\r", "\xc2\x9b"}) EXPECT_EQ(text.find(raw), std::string::npos) << text;
    }
  }
  shell(folder, "schemes '" + (folder / "loud.toml") + "' --width 32 --heads 2 > '" + (folder / "out") + "'");
  EXPECT_NE(test::read_file(folder / "out").find("\\x1b[31mred\\x1b[0m \\u009b2J"), std::string::npos);
}

}  // namespace
}  // namespace norma
