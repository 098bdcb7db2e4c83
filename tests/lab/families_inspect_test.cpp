// Every analysis on every row of the table of families: at initialisation and of weights as they are, with its own
// schemes and its usual task. A new family is covered by its row.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "norma/lab/inspect.h"
#include "norma/lab/results.h"
#include "norma/lab/smoothing.h"
#include "norma/lab/study.h"
#include "norma/train/data.h"
#include "norma/train/result.h"

namespace norma {
namespace {

class FamiliesInLab : public testing::TestWithParam<std::string> {};

// As its study has it, but small; several blocks a stage where there are stages.
RunConfig small_run(const std::string& family) {
  RunConfig config = default_study_of(Family(family)).base;
  config.model.layers = 5;
  config.model.width = 8;
  config.model.heads = 2;
  config.model.batch = config.model.family->batch > 0 ? config.model.family->batch : 4;
  config.model.time = 8;
  if (config.model.family == "encoder_decoder") config.model.encoder_layers = 5;
  return settle_task(config);
}

std::vector<std::string> schemes_of(const Family& family) {
  return family->study.schemes.empty() ? std::vector<std::string>{"post", "pre"} : family->study.schemes;
}

std::set<std::string> names_in(const Findings& findings) {
  std::set<std::string> names;
  for (const Analysis& analysis : findings.analyses) names.insert(analysis.name);
  return names;
}

// What must be there whatever the family; the rest has a note that says why not.
void expect_all(const Findings& findings, const ModelConfig& model) {
  const std::set<std::string> names = names_in(findings);
  for (const char* name : {"gradient", "gradient_batch", "gradient_layer", "gradient_role", "stream", "branch_share",
                           "angle", "influence", "massive", "kurtosis", "amplification", "update_sgd", "update_sign",
                           "jacobian", "sharpness", "sharpness_adam", "stable_lr_sgd", "stable_lr_adam"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_EQ(names.contains("dirichlet"), reads_graph(model));
  for (const Analysis& analysis : findings.analyses) {
    for (const Series& series : analysis.series) {
      for (const Estimate& y : series.y) EXPECT_TRUE(std::isfinite(y.mean)) << analysis.name << " of " << series.scheme;
      for (const LayerProfile& profile : series.profiles) {
        for (std::size_t i = 0; i < profile.y.size(); ++i)
          EXPECT_TRUE(std::isfinite(profile.y[i].mean)) << analysis.name << " at " << profile.sites[i];
      }
    }
  }
  Results results = new_results(ResultsKind::inspect);
  add_findings(results, findings);
  EXPECT_EQ(write_results(read_results(write_results(results), "results.json")), write_results(results));
}

TEST_P(FamiliesInLab, EveryAnalysisAtInitialisation) {
  const RunConfig config = small_run(GetParam());
  const std::vector<std::string> schemes = schemes_of(config.model.family);
  InspectOptions options{.schemes = {schemes[0], schemes[1]}, .model = config.model};
  options.depths = {2, 4};
  options.seeds = {1, 2};
  options.only = {"all"};
  options.batches = 2;
  options.threads = 2;
  options.theory = true;
  options.open = [&](const ModelConfig& model) {
    RunConfig run = config;
    run.model = model;
    return open_data(run);
  };
  expect_all(inspect(options), config.model);
}

TEST_P(FamiliesInLab, EveryAnalysisAndTheWorthOfLayersOfOneModel) {
  RunConfig config = small_run(GetParam());
  const auto source = open_data(config);
  for (const std::string& scheme : schemes_of(config.model.family)) {
    config.model.scheme = scheme;
    const bool first = scheme == schemes_of(config.model.family).front();
    const Subject subject = initial_subject(config.model, source, {1}, 2);
    const std::vector<std::string> only = first ? std::vector<std::string>{"all"} : std::vector<std::string>{"depth"};
    const Findings findings = inspect(subject, only, 2);
    if (first) expect_all(findings, subject.model);
    ASSERT_EQ(findings.depth_use.size(), 1u);
    const DepthFinding& depth = findings.depth_use[0];
    std::string notes;
    for (const std::string& note : findings.notes) notes += note + "\n";
    const std::size_t layers = layers_of_last_stacks(subject.model).size();
    EXPECT_EQ(layers, config.model.family == "unet" ? 15u : 5u);  // down, middle and up
    ASSERT_EQ(depth.deletion.size(), layers);
    ASSERT_EQ(depth.influence.size(), layers) << scheme;
    for (std::size_t layer = 0; layer < layers; ++layer) {
      EXPECT_TRUE(std::isfinite(depth.deletion[layer].mean)) << scheme << " layer " << layer;
      EXPECT_TRUE(std::isfinite(depth.influence[layer].mean)) << scheme << " layer " << layer;
    }
    EXPECT_EQ(depth.kept_loss.size(), layers + 1);
    const bool says_shape = notes.find("change the shape of the stream") != std::string::npos;
    EXPECT_TRUE(depth.swap.size() == layers - 1 || says_shape) << scheme << "\n" << notes;
    const bool numbers = !loss_unit(subject.model).empty();
    EXPECT_EQ(depth.probe.size(), numbers ? 0u : layers + 1) << scheme << "\n" << notes;
    EXPECT_EQ(depth.lens_divergence.size(), numbers ? 0u : layers + 1) << scheme << "\n" << notes;
    EXPECT_TRUE(!depth.path_share.empty() || notes.find("no path lengths") != std::string::npos) << notes;
  }
}

std::vector<std::string> rows_of_table() {
  std::vector<std::string> names;
  for (const FamilyRow& row : families()) names.push_back(row.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Table, FamiliesInLab, testing::ValuesIn(rows_of_table()),
                         [](const auto& given) { return given.param; });

}  // namespace
}  // namespace norma
