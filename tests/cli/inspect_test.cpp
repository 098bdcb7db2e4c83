// norma inspect as a process: the numbers of every analysis as JSON and on a terminal, trained runs, mistakes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "norma/store/run_directory.h"

namespace norma {
namespace {

using test::Ended;
using test::TemporaryFolder;
using Json = nlohmann::json;

std::vector<std::string> small_inspection(std::vector<std::string> more, const char* time = "8") {
  std::vector<std::string> arguments = {"inspect", "--quiet", "--width", "16", "--heads", "2", "--hidden",  "16",
                                        "--time",  time,      "--batch", "2",  "--seeds", "2", "--batches", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Json inspected(const TemporaryFolder& folder, const std::vector<std::string>& arguments) {
  const Ended outcome = test::run(folder, arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return Json::parse(outcome.out);
}

Json analysis(const Json& results, const std::string& name) {
  for (const Json& one : results.at("inspect")) {
    if (one.at("name") == name) return one;
  }
  ADD_FAILURE() << "no analysis " << name;
  return {};
}

void expect_estimate(const Json& estimate, int seeds, const std::string& where) {
  EXPECT_TRUE(estimate.at("mean").is_number()) << where << estimate;
  EXPECT_LE(estimate.at("low"), estimate.at("mean")) << where;
  EXPECT_GE(estimate.at("high"), estimate.at("mean")) << where;
  EXPECT_EQ(estimate.at("n"), seeds) << where;
}

double sum_of_shares(const Json& histogram) {
  double sum = 0;
  for (const Json& share : histogram.at("share")) sum += share.at("mean").get<double>();
  return sum + (histogram.contains("unresolved") ? histogram.at("unresolved").at("mean").get<double>() : 0);
}

void expect_scheme_in_full(const Json& scheme) {
  for (const char* key : {"name", "title", "source", "formulas", "layers", "norm_instances", "norm_parameters",
                          "parameters", "parameters_by_role", "diagram_text"})
    EXPECT_TRUE(scheme.contains(key)) << key;
  EXPECT_EQ(scheme.value("diagram_svg", "").substr(0, 4), "<svg");
}

void expect_environment(const Json& results) {
  for (const char* key : {"norma", "compiler", "cpu", "instruction_set", "cores", "memory_bytes", "command_line"})
    EXPECT_TRUE(results.at("environment").contains(key)) << key;
}

TEST(InspectProcess, GivesEveryAnalysisByDepthAndLayer) {
  const TemporaryFolder folder;
  const Json results = inspected(folder, small_inspection({"--scheme", "pre", "--scheme", "norm(2*x + f(x))",
                                                           "--depths", "2,4", "--only", "all", "--json"}));
  EXPECT_EQ(results.at("kind"), "inspect");
  expect_environment(results);
  ASSERT_EQ(results.at("schemes").size(), 2u);
  for (const Json& scheme : results.at("schemes")) expect_scheme_in_full(scheme);
  EXPECT_GE(results.at("inspect").size(), 20u);
  for (const Json& one : results.at("inspect")) {
    const std::string name = one.at("name");
    EXPECT_NE(one.value("title", ""), "") << name;
    EXPECT_NE(one.value("about", ""), "") << name;
    ASSERT_EQ(one.at("series").size(), 2u) << name;
    for (const Json& series : one.at("series")) {
      EXPECT_EQ(series.at("x"), name == "amplification" ? Json({4, 8}) : Json({2, 4})) << name;
      ASSERT_EQ(series.at("y").size(), 2u) << name;
      for (const Json& y : series.at("y")) expect_estimate(y, 2, name);
    }
  }
  const auto layers_of = [&](const char* name) {
    return analysis(results, name).at("series")[0].at("profiles")[1].at("sites").size();
  };
  EXPECT_EQ(layers_of("gradient"), 4u);
  EXPECT_EQ(layers_of("stream"), 8u) << "sublayers";
  EXPECT_EQ(layers_of("influence"), 4u);
}

TEST(InspectProcess, SetsExponentsBesideTheTheory) {
  const TemporaryFolder folder;
  const Json results = inspected(
      folder, small_inspection({"--scheme", "pre", "--depths", "2,4", "--only", "gradient,stream,update", "--json"}));
  for (const char* name : {"gradient", "gradient_batch", "stream", "update_sgd"}) {
    const Json exponent = analysis(results, name).at("series")[0].at("exponent");
    EXPECT_LE(exponent.at("low"), exponent.at("value")) << name;
    EXPECT_GE(exponent.at("high"), exponent.at("value")) << name;
    EXPECT_LT(exponent.at("low"), exponent.at("high")) << name << ": seeds differ";
  }
  const Json stream = analysis(results, "stream").at("series")[0];
  ASSERT_EQ(stream.at("theory").at("y").size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const double measured = stream.at("y")[i].at("mean");
    EXPECT_NEAR(stream.at("theory").at("y")[i].get<double>() / measured, 1, 0.3) << "depth " << stream.at("x")[i];
  }
  EXPECT_EQ(stream.at("profiles")[1].at("theory").size(), 8u) << "along the sublayers";
  for (const char* name : {"gradient_batch", "stream", "branch_share", "angle"})
    EXPECT_TRUE(analysis(results, name).at("series")[0].at("theory").at("exponent").is_number()) << name;
  EXPECT_NE(results.at("notes").dump().find("gradients averaged over batches have no theory"), std::string::npos);
}

// "0.65 ±2" would reach below 0, where no gradient is.
TEST(InspectProcess, SpreadsOnALogScaleAreFactors) {
  const TemporaryFolder folder;
  const Ended outcome = test::run(folder, small_inspection({"pre", "--depths", "2,3", "--only", "gradient"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\u00d7/\u00f7 "), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("\u00b1"), std::string::npos) << outcome.out;
}

TEST(InspectProcess, PrintsZerosOfAStreamThatDoesNotChange) {
  const TemporaryFolder folder;
  const Ended outcome =
      test::run(folder, small_inspection({"--scheme", "rezero", "--depths", "2,4", "--only", "gradient,stream"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("nan"), std::string::npos) << outcome.out;
}

TEST(InspectProcess, ReadsASchemeFromAFileAsItsHelpSays) {
  const TemporaryFolder folder;
  std::ofstream(folder / "mine.toml") << "title = \"Mine\"\nsource = \"\"\nsublayer = \"x + f(norm(x))/2\"\n";
  inspected(folder,
            small_inspection({"--scheme", folder / "mine.toml", "--layers", "2", "--only", "stream", "--json"}));
  EXPECT_NE(test::run(folder, {"inspect", "--help"}).out.find("Names, files or formulas"), std::string::npos);
}

TEST(InspectProcess, SetsTheTheoryBesideBothStacks) {
  const TemporaryFolder folder;
  const Ended text = test::run(
      folder, small_inspection({"--scheme", "pre", "--family", "encoder_decoder", "--depths", "2,3", "--only",
                                "gradient,stream", "--out", folder / "all.json", "--report", folder / "all.html"}));
  ASSERT_EQ(text.code, 0) << text.err;
  const Json results = Json::parse(test::read_file(folder / "all.json"));
  const auto deepest = [&](const char* name) { return analysis(results, name).at("series")[0].at("profiles")[1]; };
  for (const auto& [name, sites] : {std::pair{"stream", 15u}, std::pair{"gradient_batch", 6u}}) {
    EXPECT_EQ(deepest(name).at("sites").size(), sites) << name;
    EXPECT_EQ(deepest(name).at("theory").size(), sites) << name;
    EXPECT_TRUE(analysis(results, name).at("series")[0].contains("theory")) << name;
  }
  const auto at = [&](std::size_t site) {
    return fmt::format("{:.3g} at", deepest("stream").at("theory")[site].get<double>());
  };
  for (const std::size_t end : {0u, 5u, 6u, 14u})
    EXPECT_NE(text.out.find(fmt::format("{} {}", at(end), deepest("stream").at("sites")[end].get<std::string>())),
              std::string::npos)
        << end << " " << text.out;
  EXPECT_NE(text.out.find("says how far off"), std::string::npos) << text.out;
  EXPECT_NE(test::read_file(folder / "all.html").find("\"theory\""), std::string::npos);
}

TEST(InspectProcess, DrawsALevelStreamLevel) {
  const TemporaryFolder folder;
  const Ended outcome = test::run(folder, small_inspection({"--scheme", "post", "--layers", "4", "--only", "stream"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("post        \u2585\u2585\u2585\u2585\u2585\u2585\u2585\u2585  1 at layers.0.attn"),
            std::string::npos)
      << "after a norm the rms is 1, and what differs is rounding: " << outcome.out.substr(0, 600);
}

TEST(InspectProcess, GivesTheHistogramOfSingularValues) {
  const TemporaryFolder folder;
  const auto series = [&](const char* time) {
    const Json results = inspected(
        folder, small_inspection({"--scheme", "pre", "--depths", "2,4", "--only", "jacobian", "--json"}, time));
    return analysis(results, "jacobian").at("series")[0];
  };
  const Json small = series("8"), large = series("24");
  for (const Json& one : {small, large}) {
    ASSERT_EQ(one.at("histograms").size(), 2u);
    EXPECT_EQ(one.at("histograms")[1].at("depth"), 4);
    for (const Json& histogram : one.at("histograms")) {
      ASSERT_EQ(histogram.at("edges").size(), histogram.at("share").size() + 1);
      EXPECT_NEAR(sum_of_shares(histogram), 1, 1e-9);
    }
  }
  EXPECT_EQ(small.at("histograms")[0].at("method"), "exact");
  EXPECT_EQ(large.at("histograms")[0].at("method"), "projections");
  const Ended text = test::run(folder, small_inspection({"--scheme", "pre", "--depths", "2,4", "--only", "jacobian",
                                                         "--report", folder / "report.html"}));
  EXPECT_NE(text.out.find("singular values at 4 layers, all"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("█"), std::string::npos) << text.out;
  EXPECT_NE(test::read_file(folder / "report.html").find("\"histograms\""), std::string::npos);
}

TEST(InspectProcess, TheCommandInTheResultsRepeatsThem) {
  const TemporaryFolder folder;
  const Ended outcome = test::run(folder, small_inspection({"--scheme", "x + f(norm(x))", "--layers", "2", "--only",
                                                            "stream", "--vocabulary", "31", "--out", folder / "a"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json first = Json::parse(test::read_file(folder / "a"));
  std::vector<std::string> words;
  const std::string command = first.at("command");
  std::string word;
  bool quoted = false;
  for (const char c : command + " ") {
    if (c == '\'')
      quoted = !quoted;
    else if (c == ' ' && !quoted)
      words.push_back(std::exchange(word, ""));
    else
      word += c;
  }
  ASSERT_EQ(words[0], "norma");
  words.erase(words.begin());
  words.push_back("--json");
  EXPECT_EQ(inspected(folder, words).at("inspect"), first.at("inspect"));
}

TEST(InspectProcess, MeasuresATrainedRun) {
  const TemporaryFolder folder;
  const Ended trained = test::run(folder, test::small_model("train", folder / "run", {"--train.steps=20"}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Json results = inspected(folder, {"inspect", "--quiet", "--run", folder / "run", "--only", "all", "--json"});
  expect_environment(results);
  expect_scheme_in_full(results.at("schemes")[0]);
  EXPECT_NE(results.value("config", "").find("steps = 20"), std::string::npos);
  EXPECT_EQ(analysis(results, "jacobian").at("series")[0].at("histograms").size(), 1u);
  const Json depth = results.at("depth_use")[0];
  EXPECT_EQ(depth.at("layers"), 2);
  EXPECT_EQ(depth.at("deletion").size(), 2u);
  EXPECT_EQ(depth.at("curve").at("loss").size(), 3u);
  EXPECT_EQ(depth.at("curve").at("loss")[2], depth.at("loss").at("mean")) << "with all layers";
  const Ended text = test::run(folder, {"inspect", "--quiet", "--run", folder / "run", "--only", "depth"});
  EXPECT_NE(text.out.find("effective depth"), std::string::npos) << text.out << text.err;
}

TEST(InspectProcess, OfARunWhoseLayersGetNoGradientNoPathIsSaidToCarryOne) {
  const TemporaryFolder folder;
  const std::vector<std::string> dead = {"--scheme", "f(x)*0", "--train.steps=2"};
  ASSERT_EQ(test::run(folder, test::small_model("train", folder / "run", dead)).code, 0);
  const Ended text = test::run(folder, {"inspect", "--quiet", "--run", folder / "run", "--only", "depth"});
  EXPECT_NE(text.out.find("gradient by path length  none arrives"), std::string::npos) << text.out << text.err;
  EXPECT_EQ(text.out.find("nan"), std::string::npos) << text.out;
}

// generate, inspect --run and train have one idea of a run whose newest checkpoint is damaged.
TEST(InspectProcess, ADamagedNewestCheckpointIsPassedOverByEveryVerb) {
  const TemporaryFolder folder;
  const std::vector<std::string> train = test::small_model(
      "train", folder / "run", {"--train.steps=20", "--train.checkpoint_every=5", "--train.log_every=5"});
  ASSERT_EQ(test::run(folder, train).code, 0);
  const RunView run(folder / "run");
  const std::string newest = run.checkpoint_path(20).string(), whole = test::read_file(newest);
  std::string flipped = whole;
  flipped[0] ^= 1;
  for (const std::string& damaged : {whole.substr(0, whole.size() / 2), flipped}) {
    folder.write("run/checkpoints/step-00000020.safetensors", damaged);
    const std::string warning = "warning: '" + newest + "'";
    const Ended said = test::run(folder, {"generate", folder / "run", "--tokens", "3", "--json"});
    ASSERT_EQ(said.code, 0) << said.err;
    EXPECT_EQ(Json::parse(said.out)["step"], 15);
    EXPECT_TRUE(said.err.starts_with(warning)) << said.err;
    const Ended inspected =
        test::run(folder, {"inspect", "--run", folder / "run", "--only", "stream", "--json", "--quiet"});
    ASSERT_EQ(inspected.code, 0) << inspected.err;
    EXPECT_TRUE(inspected.err.starts_with(warning)) << inspected.err;
    std::filesystem::remove(folder / "run/DONE");
    const Ended resumed = test::run(folder, train);
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_TRUE(resumed.err.starts_with(warning)) << resumed.err;
    EXPECT_EQ(test::read_file(newest), whole) << "the steps behind it were taken again";
  }
}

TEST(InspectProcess, DamagedAndMissingCheckpointsAreMistakes) {
  const TemporaryFolder folder;
  ASSERT_EQ(test::run(folder, test::small_model("train", folder / "run", {"--train.steps=20"})).code, 0);
  const RunView run(folder / "run");
  const std::string whole = test::read_file(run.checkpoint_path(run.checkpoint_steps().back()));
  const auto error_with = [&](const std::string& path) {
    const Ended outcome = test::run(folder, {"inspect", "--run", path});
    EXPECT_EQ(outcome.code, 2) << path;
    EXPECT_EQ(outcome.out, "") << path;
    return outcome.err;
  };
  for (const std::size_t bytes : {whole.size() - 100, whole.size() / 2, std::size_t{1000}, std::size_t{5}}) {
    std::ofstream(folder / "cut.safetensors", std::ios::binary) << whole.substr(0, bytes);
    EXPECT_NE(error_with(folder / "cut.safetensors").find("no valid safetensors file"), std::string::npos) << bytes;
  }
  std::string flipped = whole;
  flipped[whole.size() - 40] = static_cast<char>(flipped[whole.size() - 40] ^ 1);
  std::ofstream(folder / "flipped.safetensors", std::ios::binary) << flipped;
  EXPECT_NE(error_with(folder / "flipped.safetensors").find("checksum"), std::string::npos);
  EXPECT_NE(error_with(folder / "nothing").find("there is no run"), std::string::npos);
  std::filesystem::create_directory(folder / "empty");
  EXPECT_NE(error_with(folder / "empty").find("holds no run"), std::string::npos);
}

TEST(InspectProcess, MistakesExitWithTwoAndOneClearMessage) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"--scheme", "prre"}, "did you mean 'pre'?"},
      {{"--scheme", "norm(x + "}, "^"},
      {{"--depths", "0"}, "'0' in '0' is not a depth"},
      {{"--depths", "2,,4"}, "'' in '2,,4' is not a depth"},
      {{"--layers", "0"}, "expected a whole number from 1 to 10000"},
      {{"--depths", ""}, "--depths: '' is empty; expected numbers between commas, such as 6,12,24"},
      {{"--only", ""}, "--only: '' is empty; expected some of gradient,"},
      {{"--only", "gradient,"}, "there is no analysis ''"},
      {{"--scheme", ""}, "--scheme: '' is empty; expected a name, a formula or a file"},
      {{"--run", ""}, "--run: '' is empty"},
      {{"--widht", "16"}, "--widht"},
      {{"--seeds", "three"}, "three"},
      {{"--only", "gradeint"}, "did you mean 'gradient'?"},
      {{"--norm", "lyer"}, "did you mean 'layer'?"},
      {{"--task", "gramar"}, "did you mean 'grammar'?"},
      {{"--text", folder / "missing.txt"}, "No such file"},
      {{"--run", folder / "missing", "--layers", "2"}, "has its own scheme and depth"},
      {{"--schemes-dir", folder / "missing"}, "missing"},
  };
  for (const auto& [more, message] : mistakes) {
    const Ended outcome = test::run(folder, small_inspection(more));
    const std::string what = fmt::format("{}: {}", fmt::join(more, " "), outcome.err);
    EXPECT_EQ(outcome.code, 2) << what;
    EXPECT_EQ(outcome.out, "") << what;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << what;
    EXPECT_TRUE(outcome.err.starts_with("norma: ")) << what;
  }
}

}  // namespace
}  // namespace norma
