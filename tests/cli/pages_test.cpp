// Pages that verbs end with: they are there, and never in the way of the work.
#include <gtest/gtest.h>

#include "cli/process.h"
#include "norma/store/run_directory.h"

namespace norma {
namespace {

using test::Ended;
using test::TemporaryFolder;
namespace fs = std::filesystem;

bool is_page(const fs::path& path) {
  return fs::is_regular_file(path) && test::read_file(path).find("</html>") != std::string::npos;
}

TEST(Pages, ARunEndsWithOne) {
  const TemporaryFolder folder;
  const std::vector<std::string> command =
      test::small_model("train", folder / "run", {"--train.steps=30", "--members.lr=[1e-2, 10]"});
  const Ended ended = test::run(folder, command);
  ASSERT_EQ(ended.code, 0) << ended.err;
  const fs::path page = folder / "run/report.html";
  ASSERT_TRUE(is_page(page));
  EXPECT_NE(test::read_file(page).find("learning rate is too high"), std::string::npos) << "says why a member failed";
  fs::remove(page);
  const std::string left = folder.write("run/.report.html.1299-13.norma-tmp", "<html>");  // by a kill
  EXPECT_EQ(test::run(folder, command).code, 0);
  EXPECT_TRUE(is_page(page)) << "made again for a run that had finished before";
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(remove_run(Folder(folder.path()), "run")) << "a page belongs to the run";
}

TEST(Pages, ARunWithoutRoomForOneIsDoneAllTheSame) {
  const TemporaryFolder folder;
  const std::vector<std::string> command = test::small_model("train", folder / "run", {"--train.steps=30"});
  ASSERT_EQ(test::run(folder, command).code, 0);
  fs::remove(folder / "run/report.html");
  fs::create_directories(folder / "run/report.html/in the way");
  const Ended ended = test::run(folder, command);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("warning: there is no page"), std::string::npos) << ended.err;
  EXPECT_NE(ended.out.find("verdict"), std::string::npos) << ended.out;
}

TEST(Pages, ASweepEndsWithOne) {
  const TemporaryFolder folder;
  const std::vector<std::string> command =
      test::small_model("sweep", folder / "sweep", {"--train.steps=10", "--train.lr=[1e-3,1e-2]"});
  const Ended ended = test::run(folder, command);
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(is_page(folder / "sweep/report.html"));
  fs::remove(folder / "sweep/report.html");
  EXPECT_EQ(test::run(folder, command).code, 0) << "the same sweep again";
  EXPECT_TRUE(is_page(folder / "sweep/report.html")) << "made again";
}

TEST(Pages, AComparisonWritesOneWhereItIsAsked) {
  const TemporaryFolder folder;
  for (const std::string scheme : {"pre", "post"})
    ASSERT_EQ(test::run(folder, test::small_model("train", folder / scheme,
                                                  {"--train.steps=20", "--model.scheme=" + scheme,
                                                   "--members.seed=[1, 2]", "--train.evaluate_every=5"}))
                  .code,
              0);
  const Ended ended = test::run(folder, {"compare", folder / "pre", folder / "post", "--out", folder / "compare.html"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  ASSERT_TRUE(is_page(folder / "compare.html"));
  const std::string page = test::read_file(folder / "compare.html");
  for (const char* part : {"model.scheme", "id=\"curves\"", "95 % interval", "seed 2", "<h1>"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  ASSERT_EQ(
      test::run(folder, test::small_model("train", folder / "other", {"--train.steps=20", "--data.depth=2"})).code, 0);
  ASSERT_EQ(test::run(folder, {"compare", folder / "pre", folder / "other", "--out", folder / "other.html"}).code, 0);
  EXPECT_NE(test::read_file(folder / "other.html").find("<h1>These runs cannot be compared by their losses.</h1>"),
            std::string::npos)
      << "other data: no seed could support anything";
  const Ended nowhere =
      test::run(folder, {"compare", folder / "pre", folder / "post", "--out", folder / "no/such/compare.html"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("no/such"), std::string::npos) << nowhere.err;
}

TEST(Pages, OneThatCannotBeWrittenIsAWarning) {
  const TemporaryFolder folder;
  std::vector<std::string> command =
      test::small_model("sweep", folder / "sweep", {"--train.steps=10", "--train.lr=[1e-3,1e-2]"});
  ASSERT_EQ(test::run(folder, command).code, 0);
  fs::remove(folder / "sweep/report.html");
  fs::create_directories(folder / "sweep/report.html/in the way");
  command.emplace_back("--report");
  const Ended ended = test::run(folder, command);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("warning"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("report.html"), std::string::npos) << ended.err;
}

TEST(Pages, AnInspectionOfARunLeavesOneThere) {
  const TemporaryFolder folder;
  const std::vector<std::string> command = test::small_model("train", folder / "run", {"--train.steps=20"});
  ASSERT_EQ(test::run(folder, command).code, 0);
  const Ended ended = test::run(folder, {"inspect", "--run", folder / "run", "--only", "stream", "--batches", "1"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out.rfind("The stream of pre", 0), 0u) << "opens with its conclusions: " << ended.out.substr(0, 200);
  EXPECT_TRUE(is_page(folder / "run/inspect.html"));
  const Ended again = test::run(folder, command);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find("is already finished"), std::string::npos) << again.err;
  EXPECT_TRUE(remove_run(Folder(folder.path()), "run")) << "a page belongs to the run";
}

}  // namespace
}  // namespace norma
