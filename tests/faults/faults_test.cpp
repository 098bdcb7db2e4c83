// The harness itself: the shim sees every call and does what it is told, and a disk that lies is noticed as a loss.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "temporary_folder.h"
#include "trial.h"

namespace norma::faults {
namespace {

namespace fs = std::filesystem;

class Shim : public testing::Test {
 protected:
  Exit run(const std::string& what, const Injection& injection) {
    bench_.clear({});
    std::ofstream(bench_.root() / "out") << "old contents";
    return bench_.run({what}, injection);
  }
  std::string out() const { return text_of(bench_.root() / "out"); }

  // The number of the only call of this name in a careful replacement.
  long call(const std::string& name, const std::string& what = "replace") {
    bench_.clear({});
    long number = 0;
    for (const Call& each : bench_.count_calls({what}))
      if (each.name == name && number == 0) number = each.number;
    EXPECT_GT(number, 0) << name;
    return number;
  }

  test::TemporaryFolder folder_;
  Bench bench_{{NORMA_CALLS, NORMA_SHIM}, folder_ / "bench"};
};

TEST_F(Shim, SeesEveryCall) {
  bench_.clear({});
  std::string seen;
  for (const Call& each : bench_.count_calls({"every"})) seen += each.name + " " + each.file + "\n";
  EXPECT_EQ(
      seen,
      "open a\nwrite a\npwrite a\nwritev a\npwritev a\nftruncate a\nfsync a\nfdatasync a\nflock a\npread a\nmmap a\n"
      "openat b\nsendfile b\nclose b\nclose a\n"
      "mkdir folder\nrename folder/c\nlink d\nopen folder\nmkdir folder/inner\nrenameat folder/e\nsymlink folder/f\n"
      "unlinkat folder/f\nfsync folder\nrmdir folder/inner\nunlink d\ntruncate a\nremove folder/e\n"
      "open a\nopen a\ncreat g\nclose g\nfopen64 h\nwrite h\nrename i\nmkdir folder/j\n");
}

TEST_F(Shim, AnErrorReachesTheProgramAndNothingIsDone) {
  const Exit exit = run("replace", {"error:28", call("write")});
  EXPECT_EQ(exit.code, 2);
  EXPECT_EQ(exit.error, "28\n");
  EXPECT_EQ(out(), "old contents");
  EXPECT_EQ(fs::file_size(bench_.root() / "new"), 0u);
  ASSERT_TRUE(bench_.call_that_was_hit());
  EXPECT_EQ(bench_.call_that_was_hit()->name, "write");
  EXPECT_EQ(run("replace", {"error:5", call("fsync")}).error, "5\n");
  EXPECT_EQ(run("replace", {"error:5", call("close")}).error, "5\n");
}

TEST_F(Shim, KillsBeforeAndAfterACall) {
  EXPECT_EQ(run("replace", {"kill-before", call("rename")}).signal, SIGKILL);
  EXPECT_EQ(out(), "old contents");
  EXPECT_EQ(run("replace", {"kill-after", call("rename")}).signal, SIGKILL);
  EXPECT_EQ(out(), "new contents");
  EXPECT_EQ(run("replace", {"short-kill", call("write")}).signal, SIGKILL);
  EXPECT_EQ(text_of(bench_.root() / "new"), "new co");
}

TEST_F(Shim, AShortWriteGoesOnAndAFullDiskDoesNot) {
  EXPECT_EQ(run("replace", {"short-write", call("write")}).code, 0);
  EXPECT_EQ(out(), "new contents");
  EXPECT_EQ(run("replace", {"full", call("write")}).error, "28\n");
  EXPECT_EQ(text_of(bench_.root() / "new"), "new co");
  EXPECT_EQ(run("replace", {"read-only", call("write")}).error, "30\n");
  EXPECT_EQ(run("replace", {"dead", call("write")}).error, "5\n");
}

TEST_F(Shim, ALossOfPowerTakesWhatWasNotBroughtToDisk) {
  EXPECT_EQ(run("replace", {"power", call("flock")}).signal, SIGKILL);
  EXPECT_EQ(out(), "new contents") << "all of it was";
  EXPECT_EQ(run("careless", {"power", call("flock", "careless")}).signal, SIGKILL);
  EXPECT_EQ(out(), "old contents");
  EXPECT_EQ(run("careless", {"power-data", call("flock", "careless")}).signal, SIGKILL);
  EXPECT_EQ(out(), "") << "a new name without contents";
  EXPECT_EQ(run("careless", {"power-names", call("flock", "careless")}).signal, SIGKILL);
  EXPECT_EQ(out(), "old contents");
}

TEST_F(Shim, LiesWhenAsked) {
  EXPECT_EQ(run("replace", {"lie-write", call("write")}).code, 0);
  EXPECT_EQ(out(), "new cootents");
  EXPECT_EQ(run("replace", {"lie-rename", call("rename")}).code, 0);
  EXPECT_EQ(out(), "old contents");
}

// What no program can notice must be noticed by the harness: a disk that says it has written, and has not.
TEST(Harness, ADiskThatLiesIsALoss) {
  const test::TemporaryFolder folder;
  Bench bench({NORMA_PROGRAM, NORMA_SHIM}, folder / "bench");
  const Scenario train = prepare(bench, folder / "starts", "train").at(0);
  int lies = 0;
  for (std::size_t i = 0; i + 1 < train.calls.size(); ++i) {
    const Call& call = train.calls[i];
    const bool last_checkpoint = call.file.find("step-00000006") != std::string::npos;
    if (last_checkpoint && call.kind == "write" && train.calls[i + 1].kind == "sync") {
      EXPECT_EQ(try_injections(bench, train, {{"lie-write", call.number}}).verdict, Verdict::lost);
      ++lies;
    }
    if (call.name.starts_with("rename") && call.file.ends_with("DONE")) {
      EXPECT_EQ(try_injections(bench, train, {{"lie-rename", call.number}}).verdict, Verdict::lost);
      ++lies;
    }
  }
  EXPECT_EQ(lies, 2);
}

TEST(Harness, AnUndisturbedRunIsNoLossAndAFaultThatNeverComesIsSaid) {
  const test::TemporaryFolder folder;
  Bench bench({NORMA_PROGRAM, NORMA_SHIM}, folder / "bench");
  const Scenario train = prepare(bench, folder / "starts", "train").at(0);
  EXPECT_EQ(try_injections(bench, train, {{"kill-before", 1'000'000}}).verdict, Verdict::not_reached);
}

}  // namespace
}  // namespace norma::faults
