// The laboratory from options to results.json.
#include "norma/lab/inspect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include <nlohmann/json.hpp>

#include "check.h"
#include "lab/lab_check.h"
#include "norma/lab/results.h"

namespace norma {
namespace {

InspectOptions small_options() {
  InspectOptions options{.schemes = {"pre", "norm(x + f(x))"}, .model = test::theory_model("pre", 1, 32, 16)};
  options.depths = {8, 2, 4, 2};
  options.seeds = {1, 2};
  options.only = {"gradient", "stream", "amplification"};
  options.batches = 2;
  options.theory = true;
  options.open = [](const ModelConfig& model) { return random_data(model); };
  return options;
}

std::string results_of(const Findings& findings) {
  Results results = new_results(ResultsKind::inspect);
  add_findings(results, findings);
  return write_results(results);
}

const Analysis& named(const Findings& findings, const std::string& name) {
  for (const Analysis& analysis : findings.analyses) {
    if (analysis.name == name) return analysis;
  }
  fail("no analysis '{}'", name);
}

TEST(Inspect, MeasuresAllSchemesAtAllDepths) {
  double last = -1;
  const Findings findings = inspect(small_options(), [&](double done, std::string_view) {
    EXPECT_GE(done, last);
    last = done;
  });
  EXPECT_DOUBLE_EQ(last, 1);
  const Analysis& stream = named(findings, "stream");
  ASSERT_EQ(stream.series.size(), 2u);
  const Series& pre = stream.series[0];
  EXPECT_EQ(pre.x, (std::vector<double>{2, 4, 8})) << "sorted, each once";
  EXPECT_EQ(pre.profiles.back().sites.size(), 16u);
  EXPECT_GT(pre.exponent->value, 0.2);
  ASSERT_TRUE(pre.theory.has_value());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(pre.theory->y[i] / pre.y[i].mean, 1, 0.2) << "layers " << pre.x[i];
  EXPECT_EQ(named(findings, "amplification").series[0].x, (std::vector<double>{4, 8, 16})) << "sublayers";
}

TEST(Inspect, FitsTheTheoryAsTheMeasurement) {
  InspectOptions options = small_options();
  options.schemes = {"pre", "deepnorm", "admin", "norm(x + tanh(f(x)))"};
  const Findings findings = inspect(options);
  for (const char* name : {"stream", "branch_share", "angle", "amplification", "gradient_batch"}) {
    const Analysis& analysis = named(findings, name);
    for (std::size_t scheme = 0; scheme < 3; ++scheme) {
      const Series& series = analysis.series[scheme];
      const std::string what = fmt::format("{} of {}", name, series.scheme);
      ASSERT_TRUE(series.theory.has_value()) << what;
      ASSERT_TRUE(series.theory->exponent.has_value()) << what;
      EXPECT_NEAR(*series.theory->exponent, series.exponent->value, 0.25) << what;
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(series.theory->y[i] / series.y[i].mean, 1, 0.35) << what << " at " << series.x[i];
      EXPECT_EQ(series.profiles[2].theory.size(), analysis.name == "amplification" ? 0u : series.profiles[2].y.size())
          << what;
    }
  }
  EXPECT_FALSE(named(findings, "branch_share").series[3].theory.has_value()) << "not a x + b f(..)";
  EXPECT_FALSE(named(findings, "gradient").series[0].theory.has_value());
  const auto said = [&](const char* words) {
    return std::ranges::count_if(findings.notes,
                                 [&](const std::string& note) { return note.find(words) != note.npos; });
  };
  EXPECT_EQ(said("gradients averaged over batches have no theory"), 1);
}

TEST(Inspect, TheoryStartsFromTheSchemesOwnEmbedding) {
  InspectOptions options = small_options();
  options.schemes = {"pre_gpt2", "tfixup"};
  options.only = {"stream"};
  const Findings findings = inspect(options);
  for (const char* name : {"stream", "branch_share"}) {
    for (const Series& series : named(findings, name).series) {
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(series.theory->y[i] / series.y[i].mean, 1, 0.25) << name << " of " << series.scheme;
    }
  }
}

TEST(Inspect, LeavesOutExponentsOfZeros) {
  InspectOptions options = small_options();
  options.schemes = {"rezero"};
  const Findings findings = inspect(options);
  for (const char* name : {"branch_share", "angle", "influence", "amplification", "gradient", "gradient_batch"}) {
    const Series& series = named(findings, name).series[0];
    for (const Estimate& y : series.y) EXPECT_EQ(y.mean, 0) << name;
    EXPECT_FALSE(series.exponent.has_value()) << name;
    const bool predicted = std::string_view(name) != "gradient" && std::string_view(name) != "influence";
    ASSERT_EQ(series.theory.has_value(), predicted) << name;
    if (!predicted) continue;
    EXPECT_EQ(series.theory->y, (std::vector<double>{0, 0, 0})) << name;
    EXPECT_FALSE(series.theory->exponent.has_value()) << name;
  }
  EXPECT_EQ(results_of(findings).find("\"nan\""), std::string::npos);
}

TEST(Inspect, WritesTheContract) {
  InspectOptions options = small_options();
  options.schemes = {"rezero"};
  options.depths = {2};
  options.only = {"gradient", "depth"};
  const nlohmann::json all = nlohmann::json::parse(results_of(inspect(options)));
  for (const char* key : {"norma", "kind", "created", "schemes", "inspect", "depth_use"})
    EXPECT_TRUE(all.contains(key)) << key;
  const nlohmann::json& series = all["inspect"][0]["series"][0];
  EXPECT_EQ(series["y"][0]["mean"], 0.0) << "ReZero's branches have no gradient before alpha moves";
  EXPECT_FALSE(series.contains("exponent"));
  EXPECT_EQ(all["depth_use"][0]["deletion"].size(), 2u);
  EXPECT_EQ(all["depth_use"][0]["curve"]["loss"].size(), 3u);
}

TEST(Inspect, RefusesWhatItCannotMeasure) {
  const auto error_with = [](const std::function<void(InspectOptions&)>& change) {
    InspectOptions options = small_options();
    change(options);
    return test::error_of([&] { inspect(options); });
  };
  EXPECT_NE(error_with([](auto& o) { o.depths = {4, 0}; }).find("a depth of 0 layers"), std::string::npos);
  EXPECT_NE(error_with([](auto& o) { o.only = {"gradeint"}; }).find("did you mean 'gradient'"), std::string::npos);
  EXPECT_NE(error_with([](auto& o) { o.schemes = {"x*1"}; }).find("calls no branch f(..)"), std::string::npos);
  EXPECT_NE(error_with([](auto& o) { o.seeds = {}; }).find("at least one seed"), std::string::npos);
  const std::string family = error_with([](auto& o) {
    o.model.family = "encoder_decoder";
    o.open = [](const ModelConfig& model) { return open_source({}, {model.batch, model.time, 0}); };
    o.model.vocabulary = 0;
  });
  EXPECT_NE(family.find("has no 'source', which a model of the family encoder_decoder reads"), std::string::npos)
      << family;
}

TEST(Estimates, KnowTheirIntervals) {
  const Estimate one = estimate_of(std::vector<double>{3});
  EXPECT_EQ(one.low, one.high);
  const Estimate three = estimate_of(std::vector<double>{1, 2, 3});
  EXPECT_NEAR(three.high - three.mean, 4.303 / std::sqrt(3.0), 1e-9);
  const std::vector<double> x = {2, 4, 8};
  const std::vector<std::vector<double>> y = {{4, 8}, {16, 32}, {64, 128}};
  const auto law = power_law(x, y);
  EXPECT_NEAR(law->value, 2, 1e-12);
  EXPECT_NEAR(law->high - law->low, 0, 1e-9) << "both seeds have the same slope and lie on a line";
  EXPECT_FALSE(power_law(x, std::vector<std::vector<double>>{{1}, {0}, {1}}).has_value());
}

TEST(Inspect, NoMoreNetworksAreBegunWhenTheirTimeIsUp) {
  InspectOptions options = small_options();
  options.only = {"amplification"};
  options.settle = SettledLaw{.analysis = "amplification", .width = 1e-6, .most = 6};
  EXPECT_EQ(named(inspect(options), "amplification").series[0].y[0].n, 6);
  options.settle->until = std::chrono::steady_clock::now();
  const Findings findings = inspect(options);
  EXPECT_EQ(named(findings, "amplification").series[0].y[0].n, 2);
  const auto says_so = [](const std::string& note) { return note.find("time was up") != std::string::npos; };
  EXPECT_EQ(std::ranges::count_if(findings.notes, says_so), 1);
}

}  // namespace
}  // namespace norma
