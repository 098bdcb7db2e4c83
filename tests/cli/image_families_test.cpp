// Image classifiers through the program: train, inspect at the start and of a run, study; tiny sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/process.h"
#include "norma/models/family.h"

namespace norma {
namespace {

using test::Ended;
using test::TemporaryFolder;
using Json = nlohmann::json;

struct FamilyCase {
  std::string family, scheme, norm;
};
const FamilyCase kCases[] = {{"resnet", "resnet_v2", "batch"},
                             {"resnet", "nf_resnet", "layer"},
                             {"vit", "pre", "layer"},
                             {"mixer", "pre", "layer"},
                             {"mlp", "pre", "layer"}};

class ImageFamilies : public testing::TestWithParam<FamilyCase> {};

std::vector<std::string> train_words(const FamilyCase& c, const std::string& out) {
  std::vector<std::string> words = {"train",
                                    "--quiet",
                                    "--out",
                                    out,
                                    "--model.family=" + c.family,
                                    "--model.scheme=" + c.scheme,
                                    "--model.norm=" + c.norm,
                                    "--model.layers=3",
                                    "--model.width=8",
                                    "--model.heads=2",
                                    "--model.batch=8",
                                    "--train.steps=6",
                                    "--train.threads=1",
                                    "--data.evaluation_batches=2"};
  if (c.family != "mlp") words.insert(words.end(), {"--data.settings.size=8", "--data.settings.classes=3"});
  return words;
}

// A run goes on, is inspected with everything there is, and says what it cannot be asked.
TEST_P(ImageFamilies, AreTrainedAndInspected) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const Ended trained = test::run(folder, train_words(GetParam(), run));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Ended inspected =
      test::run(folder, {"inspect", "--run", run, "--only", "all", "--json", "--batches", "2", "--threads", "1"});
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  const Json results = Json::parse(inspected.out);
  std::set<std::string> names;
  for (const Json& one : results.at("inspect")) names.insert(one.at("name"));
  for (const char* name : {"gradient", "stream", "branch_share", "influence", "amplification", "sharpness"})
    EXPECT_TRUE(names.contains(name)) << name;
  ASSERT_EQ(results.at("depth_use").size(), 1u);
  const Json& depth = results.at("depth_use")[0];
  EXPECT_EQ(depth.at("deletion").size(), 3u);
  const std::string notes = results.value("notes", Json::array()).dump();
  EXPECT_TRUE(names.contains("jacobian")) << notes;
  if (GetParam().family == "resnet") {  // three stages of one block
    EXPECT_NE(notes.find("the Jacobian is that of layers.0 to layers.0 alone"), std::string::npos) << notes;
    EXPECT_NE(notes.find("not swapped with others"), std::string::npos) << notes;
    EXPECT_TRUE(depth.at("swap").empty());
  } else {
    EXPECT_EQ(depth.at("swap").size(), 2u);
  }
}

TEST_P(ImageFamilies, AreInspectedAtTheStart) {
  const TemporaryFolder folder;
  const FamilyCase& c = GetParam();
  std::vector<std::string> words = {
      "inspect", c.scheme,  "--family", c.family,    "--norm", c.norm,    "--depths",
      "2,3",     "--width", "8",        "--heads",   "2",      "--batch", "4",
      "--seeds", "2",       "--json",   "--batches", "2",      "--only",  "gradient,stream,amplification,jacobian"};
  if (c.family == "resnet") words.insert(words.end(), {"--sizes", "stages=1,image_height=8,image_width=8"});
  const Ended ended = test::run(folder, words);
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Json results = Json::parse(ended.out);
  bool jacobian = false, theory = false;
  for (const Json& one : results.at("inspect")) {
    jacobian = jacobian || one.at("name") == "jacobian";
    theory = theory || one.at("name") == "stream";
  }
  EXPECT_TRUE(jacobian) << "a stream of one shape has one";
  EXPECT_TRUE(theory);
  const std::string notes = results.value("notes", Json::array()).dump();
  const bool predicted = c.scheme != "nf_resnet";
  EXPECT_EQ(notes.find("no theory: ") == std::string::npos, predicted) << notes;
}

TEST_P(ImageFamilies, AreStudied) {
  const TemporaryFolder folder;
  const FamilyCase& c = GetParam();
  std::vector<std::string> words = {"study", c.scheme, "x + f(x)", "--quiet", "--out", folder / "study"};
  const std::vector<std::string> training = train_words(c, "");
  std::copy_if(training.begin(), training.end(), std::back_inserter(words), [](const std::string& word) {
    return word.starts_with("--model.") && !word.starts_with("--model.scheme") ? true : word.starts_with("--data.");
  });
  words.insert(words.end(), {"--steps", "4", "--budget", "200steps", "--train.threads=1"});
  const Ended ended = test::run(folder, words);
  EXPECT_EQ(ended.code, 0) << ended.err;
  const Json results = Json::parse(test::read_file(folder / "study/results.json"));
  EXPECT_EQ(results.at("schemes").size(), 2u);
}

class EveryFamily : public testing::TestWithParam<std::string> {};

// With nothing but its name, and what is printed of it; then a run of its usual task.
TEST_P(EveryFamily, IsInspectedByItsNameAndAsARun) {
  const TemporaryFolder folder;
  const Ended start =
      test::run(folder, {"inspect", "--family", GetParam(), "--depths", "2,3", "--width", "8", "--heads", "2",
                         "--seeds", "2", "--batches", "2", "--only", "all", "--time", "8"});
  ASSERT_EQ(start.code, 0) << start.err;
  for (const char* nonsense : {"nan", "inf "}) EXPECT_EQ(start.out.find(nonsense), std::string::npos) << start.out;
  const std::string run = folder / "run";
  const Family family(GetParam());
  const std::string scheme = family->study.schemes.empty() ? "pre" : family->study.schemes[0];
  std::vector<std::string> words = {"train", "--quiet", "--out", run, "--family", GetParam(), "--train.steps=3"};
  for (const std::string& key : family->study.keys) words.push_back("--" + key);
  words.insert(words.end(), {"--model.scheme=" + scheme, "--model.layers=3", "--model.width=8", "--model.heads=2",
                             "--train.threads=1", "--data.evaluation_batches=2"});
  if (family->batch == 0) words.push_back("--model.batch=4");
  const Ended trained = test::run(folder, words);
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Ended ended = test::run(folder, {"inspect", "--run", run, "--only", "all", "--batches", "2", "--threads", "1"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  for (const char* nonsense : {"nan", "inf "}) EXPECT_EQ(ended.out.find(nonsense), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("effective depth"), std::string::npos) << ended.out;
}

std::vector<std::string> families_of_table() {
  std::vector<std::string> names;
  for (const FamilyRow& row : families()) names.push_back(row.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryFamily, testing::ValuesIn(families_of_table()),
                         [](const auto& one) { return one.param; });

TEST(ImageFamiliesMistakes, OfSizesAreNamed) {
  const TemporaryFolder folder;
  const auto error = [&](const char* sizes) {
    const Ended ended = test::run(folder, {"inspect", "pre", "--family", "resnet", "--sizes", sizes, "--depths", "1"});
    EXPECT_EQ(ended.code, 2);
    return ended.err;
  };
  EXPECT_NE(error("stages").find("--sizes: 'stages' in 'stages' is not a size; expected names and whole numbers"),
            std::string::npos);
  EXPECT_NE(error("stages=1,stem=five").find("'stem=five'"), std::string::npos);
  EXPECT_NE(error("storeys=2").find("the family resnet has no such size"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Table, ImageFamilies, testing::ValuesIn(kCases),
                         [](const auto& one) { return one.param.family + "_" + one.param.scheme; });

}  // namespace
}  // namespace norma
