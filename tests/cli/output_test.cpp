// What norma says when its output cannot be written.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "cli/process.h"

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
  const std::string command = "{ " NORMA_PROGRAM " " + arguments + "; } 2> '" + err + "'";
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
      "trap '' PIPE; { " NORMA_PROGRAM " schemes --json 2> '" + err + "'; } | head -1 > /dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(test::read_file(err), "");
}

}  // namespace
}  // namespace norma
