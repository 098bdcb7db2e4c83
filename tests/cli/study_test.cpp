// norma study as a process: a small study from end to end, and mistakes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/process.h"

namespace norma {
namespace {

using test::Ended;
using test::TemporaryFolder;

std::vector<std::string> small_study(const std::string& out, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"study",    "--out",    out,    "--quiet",         "--depths",
                                        "2,4",      "--layers", "2",    "--width",         "16",
                                        "--steps",  "40",       "--lr", "1e-3,1e-2",       "--warmup",
                                        "0",        "--seeds",  "1,2",  "--model.batch=4", "--model.time=16",
                                        "--budget", "0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(StudyProcess, EndsWithATableResultsAndAReport) {
  const TemporaryFolder folder;
  const Ended outcome = test::run(
      folder, small_study(folder / "out", {"--extra-rates", "0", "--schemes", "pre", "post", "norm(2*x + f(x))"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("verdict"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("nats per token"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("accuracy"), std::string::npos) << "tokens are no classes: " << outcome.out;
  const auto results = nlohmann::json::parse(test::read_file(folder / "out/results.json"));
  EXPECT_EQ(results["kind"], "study");
  EXPECT_EQ(results["schemes"].size(), 3u);
  for (const auto& scheme : results["schemes"]) {
    EXPECT_EQ(scheme["layers"], 2) << "those that are trained";
    for (const char* key : {"title", "parameters_by_role", "diagram_svg", "diagram_text"})
      EXPECT_TRUE(scheme.contains(key)) << key;
  }
  EXPECT_TRUE(results["environment"].contains("cpu"));
  EXPECT_EQ(results["runs"].size(), 12u);
  EXPECT_EQ(results["verdicts"].size(), 3u);
  EXPECT_TRUE(results["advice"]["words"].is_string());
  const auto& analyses = results["inspect"];
  const auto gradient =
      std::find_if(analyses.begin(), analyses.end(), [](const auto& a) { return a["name"] == "gradient"; });
  ASSERT_NE(gradient, analyses.end());
  EXPECT_EQ((*gradient)["series"].size(), 3u);
  const std::string report = test::read_file(folder / "out/report.html");
  EXPECT_NE(report.find("<!doctype html>"), std::string::npos);
  EXPECT_NE(report.find("norm(2*x + f(x))"), std::string::npos);
  // The same command again finds everything done.
  const Ended again = test::run(folder, small_study(folder / "out", {"--extra-rates", "0", "--no-inspect", "--schemes",
                                                                     "pre", "post", "norm(2*x + f(x))"}));
  EXPECT_EQ(again.code, 0) << again.err;
}

TEST(StudyProcess, ARepeatedCommandIsDoneAndSaysSo) {
  const TemporaryFolder folder;
  const std::vector<std::string> arguments =
      small_study(folder / "out", {"--extra-rates", "0", "--no-inspect", "--schemes", "pre"});
  const Ended first = test::run(folder, arguments);
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string results = test::read_file(folder / "out/results.json");
  std::filesystem::remove(folder / "out/report.html");  // as after a kill before its last file
  const Ended again = test::run(folder, arguments);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find("is already finished; nothing was computed"), std::string::npos) << again.err;
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(test::read_file(folder / "out/results.json"), results);
  EXPECT_TRUE(std::filesystem::exists(folder / "out/report.html"));
}

TEST(StudyProcess, KilledAtRandomMomentsItEndsWithTheSameLosses) {
  const TemporaryFolder folder;
  const auto arguments = [&](const std::string& out) {
    return std::vector<std::string>{"study",
                                    "--out",
                                    out,
                                    "--quiet",
                                    "--no-inspect",
                                    "--schemes",
                                    "pre",
                                    "post",
                                    "--layers",
                                    "2",
                                    "--width",
                                    "16",
                                    "--steps",
                                    "80",
                                    "--lr",
                                    "1e-4,1e-3",
                                    "--warmup",
                                    "0",
                                    "--seeds",
                                    "1,2",
                                    "--budget",
                                    "6000steps",
                                    "--train.checkpoint_every=5",
                                    "--model.batch=4",
                                    "--model.time=16"};
  };
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(test::run(folder, arguments(folder / "whole")).code, 0);
  const std::chrono::duration<double> straight = std::chrono::steady_clock::now() - start;
  const int kills = test::kill_until_done(folder, arguments(folder / "broken"), straight, 0.25, [] { return false; });
  EXPECT_GT(kills, 0);
  const auto runs_in = [&](const std::string& study) {
    auto runs = nlohmann::json::parse(test::read_file(folder / (study + "/results.json")))["runs"];
    for (auto& run : runs) run.erase("tokens_per_second");
    return runs;
  };
  EXPECT_GT(runs_in("whole").size(), 8u) << "rates beyond the grid";
  EXPECT_EQ(runs_in("broken"), runs_in("whole")) << "after " << kills << " kills";
}

// Words and the same words backwards, or with a label that the first word decides.
void write_words(const std::string& path, bool labels) {
  std::ofstream file(path);
  std::mt19937 random(1);
  if (labels) file << "text\tlabel\n";
  for (int row = 0; row < 300; ++row) {
    std::string words, backwards;
    const auto length = 2 + random() % 4;
    for (std::size_t i = 0; i < length; ++i) {
      const char word = static_cast<char>('a' + random() % 8);
      words += std::string(i > 0 ? " " : "") + word;
      backwards = word + std::string(i > 0 ? " " : "") + backwards;
    }
    file << words << '\t' << (labels ? std::to_string(words[0] < 'e' ? 1 : 0) : backwards) << '\n';
  }
}

TEST(StudyProcess, ComparesEncoderDecodersAndEncodersOnDataThatSuitsThem) {
  const TemporaryFolder folder;
  write_words(folder / "pairs.tsv", false);
  write_words(folder / "labels.tsv", true);
  const auto study = [&](const std::string& out, std::vector<std::string> more) {
    more.insert(more.end(), {"--extra-rates", "0", "--data.tokenizer=words", "--schemes", "pre", "mhc"});
    const Ended outcome = test::run(folder, small_study(folder / out, std::move(more)));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(test::read_file(folder / (out + "/results.json")));
  };
  const auto both = study(
      "both", {"--model.family=encoder_decoder", "--data.task=translation", "--data.path=" + (folder / "pairs.tsv")});
  EXPECT_EQ(both["runs"].size(), 8u);
  EXPECT_FALSE(both["inspect"].empty());
  EXPECT_NE(both["schemes"][0]["diagram_text"].get<std::string>().find("cross-attention"), std::string::npos);
  EXPECT_FALSE(both["schemes"][1].contains("diagram_text")) << "too wide for text";
  EXPECT_NE(both["schemes"][1]["diagram_svg"].get<std::string>().find("<svg"), std::string::npos);
  ASSERT_FALSE(both["depth_use"].empty()) << both["verdicts"];
  EXPECT_NE(both["verdicts"][0]["words"].get<std::string>().find("of its 2 decoder layers"), std::string::npos);
  const auto classes = study(
      "classes", {"--model.family=encoder", "--data.task=classification", "--data.path=" + (folder / "labels.tsv")});
  EXPECT_EQ(classes["runs"].size(), 8u);
  EXPECT_EQ(classes["verdicts"].size(), 2u);
  EXPECT_NE(test::read_file(folder / "classes/report.html").find("<!doctype html>"), std::string::npos);
}

TEST(StudyProcess, EveryFamilyHasATaskWithoutAFile) {
  const TemporaryFolder folder;
  for (const auto& [family, task] : {std::pair{"encoder_decoder", "sort"}, {"encoder", "masked_grammar"}}) {
    const std::string out = folder / family;
    const Ended outcome = test::run(
        folder, small_study(out, {"--model.family=" + std::string(family), "--schemes", "pre", "--extra-rates", "0"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto results = nlohmann::json::parse(test::read_file(out + "/results.json"));
    EXPECT_EQ(results["task"]["name"], task);
    EXPECT_EQ(results["task"].contains("optimum"), task == std::string("sort")) << results["task"];
    EXPECT_EQ(results["runs"].size(), 4u);
    EXPECT_FALSE(results["inspect"].empty());
  }
}

// The words of a tiny study of a family, without anything but training.
std::vector<std::string> two_steps_of(const std::string& family, const std::string& out,
                                      const std::vector<std::string>& more) {
  std::vector<std::string> words = {"study",
                                    "--quiet",
                                    "--no-inspect",
                                    "--no-depth-use",
                                    "--family",
                                    family,
                                    "--out",
                                    out,
                                    "--budget",
                                    "0",
                                    "--steps",
                                    "2",
                                    "--seeds",
                                    "1,",
                                    "--lr",
                                    "1e-3",
                                    "--warmup",
                                    "0",
                                    "--layers",
                                    "2",
                                    "--width",
                                    "8",
                                    "--extra-rates",
                                    "0",
                                    "--model.heads=2",
                                    "--train.threads=1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Schemes, task and words of its own, whatever is left out; two steps are enough to see that.
TEST(StudyProcess, EveryFamilyHasItsOwnStudy) {
  const TemporaryFolder folder;
  struct Case {
    std::string family, scheme, task, says;
  };
  const Case cases[] = {{"resnet", "resnet_v2", "shapes", "share of right answers"},
                        {"vit", "layerscale", "shapes", "share of right answers"},
                        {"mlp", "rezero", "parity", "share of right answers"},
                        {"gcn", "gcnii", "block_model", "share of right answers"},
                        {"dit", "adaln_zero", "mixture", "mean squared error"},
                        {"unet", "unet", "shapes", "mean squared error"}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.family);
    const std::string out = folder / one.family;
    const Ended outcome = test::run(folder, two_steps_of(one.family, out, {"--data.evaluation_batches=2"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto results = nlohmann::json::parse(test::read_file(out + "/results.json"));
    EXPECT_EQ(results["task"]["name"], one.task);
    EXPECT_NE(results["schemes"].dump().find('"' + one.scheme + '"'), std::string::npos);
    EXPECT_NE(outcome.out.find(one.says), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find("accuracy") == std::string::npos, one.says != "share of right answers") << outcome.out;
    // After two steps nothing has been seen to train, so nothing has a rank.
    EXPECT_NE(outcome.out.find("\n     -  "), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find("token"), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find("nats"), std::string::npos) << outcome.out;
  }
}

// Which know nothing of the settings of the task that the family usually learns.
TEST(StudyProcess, AFamilyLearnsFiles) {
  const TemporaryFolder folder;
  std::string images("\0\0\10\3\0\0\0\50\0\0\0\10\0\0\0\10", 16), labels("\0\0\10\1\0\0\0\50", 8);
  for (int i = 0; i < 40 * 64; ++i) images += static_cast<char>(i * 7 % 251);
  for (int i = 0; i < 40; ++i) labels += static_cast<char>(i % 2);
  test::write_file(folder / "images", images);
  test::write_file(folder / "labels", labels);
  for (const std::string family : {"resnet", "vit", "unet"}) {
    const std::string out = folder / family;
    const Ended outcome = test::run(
        folder, two_steps_of(family, out,
                             {"--schemes", "pre", "rezero", "--model.batch=4", "--data.path=" + (folder / "images"),
                              "--data.target_path=" + (folder / "labels")}));
    ASSERT_EQ(outcome.code, 0) << family << outcome.err;
    EXPECT_EQ(nlohmann::json::parse(test::read_file(out + "/results.json"))["task"]["name"], "images");
  }
}

TEST(StudyProcess, MistakesExitWithTwoAndOneClearMessage) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"--schemes", "prre"}, "did you mean 'pre'?"},
      {{"--schemes", "norm(x + "}, "^"},
      {{"--lrs", "0.1,0.2"}, "'--lrs' is not an option (did you mean '--lr'?)"},
      {{"--budge=3min"}, "did you mean '--budget'?"},
      {{"--family", "resnets"}, "did you mean 'resnet'?"},
      {{"--family", "vit", "--model.family=dit"}, "expected one of them"},
      {{"--schemes", "pre", "pre"}, "given twice"},
      {{"--depths", "0"}, "depth 0"},
      {{"--text", folder / "missing.txt"}, "No such file"},
      {{"--train.lrr=1"}, "did you mean 'train.lr'?"},
      {{"--seeds", "x"}, "seeds"},
      {{"--extra-rates", "99"}, "extra-rates"},
      {{"--model.family=encoder_decoder", "--data.task=grammar"}, "expected for it one of sort"},
      {{"--model.family=encoder", "--data.task=grammar"}, "would see each next token; expected for it one of masked"},
      {{"--lr", "-1"}, "learning rate -1 was given; expected one above 0"},
      {{"--lr", "0"}, "learning rate 0 was given"},
      {{"--no-train", "--no-inspect"}, "has nothing to do"},
      {{"--layers", "100000"}, "layers"},
  };
  for (const auto& [more, message] : mistakes) {
    const Ended outcome = test::run(folder, small_study(folder / "never", more));
    EXPECT_EQ(outcome.code, 2) << fmt::format("{}: {}", fmt::join(more, " "), outcome.err);
    EXPECT_NE(outcome.err.find(message), std::string::npos) << fmt::format("{}: {}", fmt::join(more, " "), outcome.err);
  }
  const Ended nowhere = test::run(folder, small_study("/proc/norma"));
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("cannot create the directory '/proc/norma'"), std::string::npos) << nowhere.err;
}

}  // namespace
}  // namespace norma
