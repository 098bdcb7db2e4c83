// Over-smoothing by layer: what is known of linear layers, and what schemes do about it.
#include "norma/lab/smoothing.h"

#include <gtest/gtest.h>

#include "norma/lab/inspect.h"
#include "norma/train/data.h"

namespace norma {
namespace {

Subject graph_subject(const std::string& scheme, std::int64_t layers, int seeds, double degree = 12) {
  RunConfig run;
  run.model.family = "gcn";
  run.model.layers = layers;
  run.model.width = 64;
  run.model.scheme = scheme;
  run.data.settings = {{"degree", degree}, {"nodes", 200}};
  std::vector<std::uint64_t> all;
  for (int seed = 1; seed <= seeds; ++seed) all.push_back(static_cast<std::uint64_t>(seed));
  const auto source = open_data(run);
  return initial_subject(run.model, source, all, 1);
}

double mean_of_members(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST(Smoothing, OfLinearLayersIsAsTheGraphSays) {
  for (const char* scheme : {"f(x)", "x + f(x)"}) {
    SCOPED_TRACE(scheme);
    const Smoothing found = measure_smoothing(graph_subject(scheme, 4, 16));
    ASSERT_EQ(found.linear_energy.size(), 5u);
    EXPECT_EQ(found.sites.front(), "embedding");
    EXPECT_EQ(found.sites.back(), "layers.3.gcn");
    for (std::size_t site = 0; site < 5; ++site) {
      const double measured = mean_of_members(found.energy[site]),
                   expected = mean_of_members(found.linear_energy[site]);
      EXPECT_NEAR(measured, expected, 0.2 * expected) << found.sites[site];
      if (site == 0) continue;
      EXPECT_LT(measured, mean_of_members(found.energy[site - 1])) << "layers smooth";
    }
  }
}

// Of what is left at right angles to the first eigenvector a layer keeps at most the second eigenvalue.
TEST(Smoothing, LinearLayersContractByTheSecondEigenvalue) {
  const Smoothing found = measure_smoothing(graph_subject("f(x)", 24, 4));
  EXPECT_GT(found.second_eigenvalue, 0.3);
  EXPECT_LT(found.second_eigenvalue, 0.95);
  const double late = mean_of_members(found.linear_energy[24]) / mean_of_members(found.linear_energy[23]);
  EXPECT_NEAR(late, found.second_eigenvalue * found.second_eigenvalue, 0.05);
}

TEST(Smoothing, PlainLayersLoseDistancesThatPairNormAndGcnIIKeep) {
  const auto last = [](const char* scheme) {
    const Smoothing found = measure_smoothing(graph_subject(scheme, 32, 2));
    EXPECT_TRUE(found.linear_energy.empty()) << scheme;
    return std::pair{mean_of_members(found.energy.back()), mean_of_members(found.distance.back())};
  };
  const auto [energy, distance] = last("gcn");
  EXPECT_LT(distance, 0.01);
  for (const char* scheme : {"pairnorm", "gcnii"}) {
    EXPECT_GT(last(scheme).first, 3 * energy) << scheme;
    EXPECT_GT(last(scheme).second, 10 * distance) << scheme;
  }
}

TEST(Smoothing, IsFoundByInspectAndOnlyOfGraphs) {
  const Findings findings = inspect(graph_subject("f(x)", 3, 2), {"smoothing"}, 1);
  ASSERT_EQ(findings.analyses.size(), 3u);
  EXPECT_EQ(findings.analyses[0].name, "dirichlet");
  const Series& series = findings.analyses[0].series.at(0);
  ASSERT_TRUE(series.theory.has_value());
  ASSERT_EQ(series.profiles.size(), 1u);
  EXPECT_EQ(series.profiles[0].sites.size(), 4u);
  EXPECT_EQ(series.profiles[0].theory.size(), 4u);
  ModelConfig words{.layers = 2, .width = 16, .heads = 2, .vocabulary = 32, .batch = 2, .time = 8};
  EXPECT_TRUE(inspect(initial_subject(words, random_data(words), {1}, 1), {"smoothing"}, 1).analyses.empty());
}

}  // namespace
}  // namespace norma
