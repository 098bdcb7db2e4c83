// norma plot as a process: the figures of a file, and what it says of files that are not what they should be.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "norma/lab/results.h"
#include "results/made_up.h"

namespace norma {
namespace {

using test::Ended;
using test::TemporaryFolder;

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// With a map of the setting that was tuned.
std::string study_results() {
  Results results = test::made_up_results(ResultsKind::study);
  results.maps.at(0).rest = results.tuned.at(0).rest;
  return write_results(results);
}

TEST(PlotProcess, DrawsEveryKindOfFile) {
  const TemporaryFolder folder;
  write(folder / "results.json", study_results());
  for (const char* ending : {"svg", "pdf", "png", "csv", "html"}) {
    const std::string out = folder / (std::string("f.") + ending);
    const Ended drawn = test::run(
        folder, {"plot", folder / "results.json", "--figure", "stability", "--out", out, "--width", "column"});
    EXPECT_EQ(drawn.code, 0) << drawn.err;
    EXPECT_GT(std::filesystem::file_size(out), 100u) << ending;
  }
  const Ended list = test::run(folder, {"plot", folder.path().string(), "--figure", "list"});
  EXPECT_EQ(list.code, 0) << list.err;
  for (const char* figure : {"loss ", "stability ", "depth ", "init "})
    EXPECT_NE(list.out.find(figure), std::string::npos) << figure;
}

TEST(PlotProcess, MistakesAreOneClearError) {
  const TemporaryFolder folder;
  const std::string good = study_results();
  const auto said = [&](const std::string& text, const std::string& figure = "loss") {
    write(folder / "results.json", text);
    const Ended ended =
        test::run(folder, {"plot", folder / "results.json", "--figure", figure, "--out", folder / "f.svg"});
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "f.svg"));
    return ended.err;
  };
  EXPECT_NE(said(good.substr(0, good.size() / 2)).find("results.json"), std::string::npos);
  EXPECT_NE(said("{\"name\": \"package\", \"version\": \"1.0\"}").find("results.json"), std::string::npos);
  EXPECT_NE(said("").find("results.json"), std::string::npos);
  nlohmann::json damaged = nlohmann::json::parse(good);
  damaged["tuned"][0]["loss"] = "low";
  EXPECT_NE(said(damaged.dump()).find("tuned[0].loss"), std::string::npos);
  EXPECT_NE(said(good, "stabilty").find("did you mean 'stability'"), std::string::npos);
  const Ended missing = test::run(folder, {"plot", folder / "nothing.json"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.err.find("nothing.json"), std::string::npos) << missing.err;
  write(folder / "results.json", good);
  const Ended ending = test::run(folder, {"plot", folder / "results.json", "--out", folder / "f.jpg"});
  EXPECT_EQ(ending.code, 2);
  EXPECT_NE(ending.err.find(".svg, .pdf, .png or .csv"), std::string::npos) << ending.err;
}

}  // namespace
}  // namespace norma
