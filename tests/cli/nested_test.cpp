// Files that are nested without end: an error that names them, never a crash.
#include <gtest/gtest.h>

#include "cli/process.h"

namespace norma {
namespace {

using test::Ended;
using test::TemporaryFolder;

std::string times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

std::string deep_object() { return times(100000, "{\"a\":") + "1" + times(100000, "}"); }

TEST(Nested, OneSuchSchemeLeavesTheOthers) {
  const TemporaryFolder folder;
  folder.write("good.toml", "sublayer = \"x + f(x)\"\ntitle = \"A good one\"\n");
  folder.write("dots.toml", "a" + times(40000, ".a") + " = 1\n");
  folder.write("tables.toml", "[a" + times(200000, ".a") + "]\n");
  folder.write("brackets.toml", "a = " + times(200000, "[") + "\n");
  folder.write("braces.toml", "a = " + times(200000, "{a = ") + "\n");
  folder.write("quote.toml", "a = 8\"" + times(300, "T:") + "\n");
  folder.write("mismatch.toml", "a = [}\n");
  const Ended list = test::run(folder, {"schemes", "--schemes-dir", folder / "."});
  EXPECT_EQ(list.code, 0) << list.signal;
  EXPECT_NE(list.out.find("A good one"), std::string::npos);
  for (const char* name : {"dots", "tables", "brackets", "braces", "quote", "mismatch"}) {
    EXPECT_NE(list.err.find(std::string(name) + ".toml"), std::string::npos) << list.err;
    const Ended one = test::run(folder, {"schemes", folder / (std::string(name) + ".toml")});
    EXPECT_EQ(one.code, 2) << name;
    EXPECT_NE(one.err.find("line 1, column "), std::string::npos) << one.err.substr(0, 300);
  }
}

TEST(Nested, ConfigurationsAreRefused) {
  const TemporaryFolder folder;
  folder.write("run.toml", "[model" + times(40000, ".a") + "]\n");
  const Ended outcome = test::run(folder, {"train", folder / "run.toml", "--out", folder / "run"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("a key of more than 64 parts"), std::string::npos) << outcome.err.substr(0, 300);
}

TEST(Nested, ResultsOfAPeerAreRefused) {
  const TemporaryFolder folder;
  for (const std::string& text : {"{\"results\": [" + deep_object() + "]}", times(100000, "[")}) {
    const Ended outcome = test::run(folder, {"bench", "--peer", folder.write("peer.json", text)});
    EXPECT_EQ(outcome.code, 2) << outcome.signal;
    EXPECT_NE(outcome.err.find("nested too deeply"), std::string::npos) << outcome.err.substr(0, 300);
  }
}

TEST(Nested, AResultOfARunIsRefused) {
  const TemporaryFolder folder;
  const auto arguments = test::small_model("sweep", folder / "sweep", {"--train.steps=2", "--train.lr=[1e-3]"});
  ASSERT_EQ(test::run(folder, arguments).code, 0);
  int damaged = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "sweep")) {
    if (entry.path().filename() != "result.json") continue;
    test::write_file(entry.path(), "{\"members\": [" + deep_object() + "]}");
    ++damaged;
  }
  ASSERT_GT(damaged, 0);
  const Ended outcome = test::run(
      folder, {"sweep", "--report", "--out", folder / "sweep", "--model.layers=2", "--model.width=16",
               "--model.heads=2", "--model.batch=4", "--model.time=12", "--train.steps=2", "--train.lr=[1e-3]"});
  EXPECT_EQ(outcome.code, 2) << outcome.signal << outcome.err.substr(0, 300);
}

}  // namespace
}  // namespace norma
