// docs/results.schema.json says what is really written: everything that a small study, sweep, inspection and run put
// down fits it, and it names nothing that is never written.
#include <gtest/gtest.h>

#include <fstream>

#include "lab/sweep_check.h"
#include "norma/core/mapped_file.h"
#include "norma/lab/inspect.h"
#include "norma/lab/study.h"
#include "norma/train/trainer.h"
#include "places.h"
#include "results/json_schema.h"
#include "results/made_up.h"
#include "temporary_folder.h"

namespace norma {
namespace {

using nlohmann::json;
using test::JsonSchema;
using test::TemporaryFolder;

constexpr const char* kRunResult = "run_result";

JsonSchema published_schema() {
  std::ifstream file(std::string(test::kSourceFolder) + "/docs/results.schema.json");
  return JsonSchema(json::parse(file));
}

void expect_fits(const JsonSchema& schema, const std::string& text, const std::string& start = "") {
  const std::vector<std::string> problems = schema.problems(json::parse(text), start);
  for (std::size_t i = 0; i < problems.size() && i < 8; ++i) ADD_FAILURE() << problems[i];
}

// Every result.json of the runs below a folder.
int expect_runs_fit(const JsonSchema& schema, const std::filesystem::path& folder) {
  int found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename() != "result.json") continue;
    const std::string text = read_text(entry.path());
    expect_fits(schema, text, kRunResult);
    EXPECT_EQ(write_result(read_result(text, "it")), text);
    ++found;
  }
  return found;
}

TEST(ResultsSchema, AStudyFits) {
  const TemporaryFolder folder;
  StudyConfig config;
  config.schemes = {"pre", "post"};
  config.depths = {2, 3};
  config.rates = {1e-2, 3e-2};
  config.warmups = {0};
  config.seeds = {1, 2};
  config.extra_rates = 0;
  config.budget = {StudyBudget::Unit::steps, 4000};
  for (const char* setting : {"model.layers=2", "model.width=16", "model.heads=2", "model.batch=4", "model.time=12",
                              "train.steps=60", "train.threads=1", "data.evaluation_batches=4"})
    override_config(config.base, setting);
  StudyObserver observer;
  const std::atomic<bool> stop{false};
  const StudyResult study = run_study({.config = config, .directory = folder / "study"}, observer, stop);
  const JsonSchema schema = published_schema();
  expect_fits(schema, study.results_json);
  EXPECT_GE(expect_runs_fit(schema, folder / "study"), 8);
  EXPECT_EQ(write_results(read_results(study.results_json, "it")), study.results_json);
  EXPECT_TRUE(schema.shown().contains("depth_use.curve.layers_kept") &&
              schema.shown().contains("comparison.adjusted_p"));
  config.train = false;
  const StudyResult untrained = run_study({.config = config, .directory = folder / "untrained"}, observer, stop);
  expect_fits(schema, untrained.results_json);
  EXPECT_EQ(write_results(read_results(untrained.results_json, "it")), untrained.results_json);
}

TEST(ResultsSchema, ASweepFits) {
  const TemporaryFolder folder;
  SweepConfig config = test::small_sweep(24);
  for (const char* setting : {"train.lr=[1e-4,1e-3,1e-2,1e4]", "model.layers=[1,2]"}) override_sweep(config, setting);
  config.halving = HalvingConfig{.eta = 2, .min_steps = 8};
  Results results = new_results(ResultsKind::sweep);
  add_outcomes(results, test::sweep(config, folder / "sweep").outcomes);
  const JsonSchema schema = published_schema();
  const std::string text = write_results(results);
  expect_fits(schema, text);
  EXPECT_EQ(expect_runs_fit(schema, folder / "sweep"), 8);
  EXPECT_EQ(write_results(read_results(text, "it")), text);
  EXPECT_TRUE(schema.shown().contains("member_result.stopped_at_step")) << "halving stopped nobody";
  override_sweep(config, "train.schedule=\"ramp\"");
  config.halving.reset();
  Results ramps = new_results(ResultsKind::sweep);
  add_outcomes(ramps, test::sweep(config, folder / "ramps").outcomes);
  EXPECT_FALSE(ramps.ramps.empty());
  expect_fits(schema, write_results(ramps));
}

TEST(ResultsSchema, AnInspectionFits) {
  InspectOptions options{.schemes = {"pre"}};
  options.model.width = 16;
  options.model.heads = 2;
  options.model.time = 8;
  options.model.batch = 2;
  options.model.vocabulary = 32;
  options.depths = {2, 3};
  options.seeds = {1, 2};
  options.only = {"all"};
  options.theory = true;
  options.open = [](const ModelConfig& model) { return random_data(model); };
  Results results = new_results(ResultsKind::inspect);
  add_findings(results, inspect(options));
  const std::string text = write_results(results);
  const JsonSchema schema = published_schema();
  expect_fits(schema, text);
  EXPECT_TRUE(schema.shown().contains("histogram.edges"));
  EXPECT_EQ(write_results(read_results(text, "it")), text);
}

TEST(ResultsSchema, NamesEverythingThatCanBeWrittenAndNothingElse) {
  const JsonSchema schema = published_schema();
  for (const ResultsKind kind : {ResultsKind::inspect, ResultsKind::sweep, ResultsKind::study})
    expect_fits(schema, write_results(test::made_up_results(kind)));
  expect_fits(schema, write_result(test::made_up_run()), kRunResult);
  for (const std::string& property : schema.known())
    EXPECT_TRUE(schema.shown().contains(property)) << property << " is never written";
}

// Whoever adds a word to a table adds it to the schema.
template <typename Choice>
void expect_same_words(const json& schema, const char* type, const char* property) {
  json words = json::array();
  for (const auto& entry : words_for(Choice())) words.push_back(entry.word);
  EXPECT_EQ(schema["$defs"][type]["properties"][property]["enum"], words) << type << "." << property;
}

TEST(ResultsSchema, HasTheWordsOfTheTables) {
  std::ifstream file(std::string(test::kSourceFolder) + "/docs/results.schema.json");
  const json schema = json::parse(file);
  expect_same_words<RunStatus>(schema, "run", "status");
  expect_same_words<Judgement>(schema, "verdict", "verdict");
  expect_same_words<RateEdge>(schema, "extra_rates", "edge");
  json stages = json::array();
  for (const auto& entry : kStageWords) stages.push_back(entry.word);
  EXPECT_EQ(schema["$defs"]["stage"]["enum"], stages);
  EXPECT_EQ(schema["anyOf"].size(), words_for(ResultsKind()).size());
  for (const auto& [word, kind] : kResultsKindWords)
    EXPECT_EQ(schema["$defs"][std::string(word) + "_results"]["properties"]["kind"]["const"], word);
  for (const auto& [word, outcome] : kOutcomeWords) {
    const std::string about = schema["$defs"]["member_result"]["properties"]["verdict"]["description"];
    EXPECT_NE(about.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace norma
