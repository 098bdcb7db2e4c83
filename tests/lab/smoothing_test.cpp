// Over-smoothing by layer: what is known of linear layers, and what schemes do about it.
#include "norma/lab/smoothing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "norma/core/random.h"
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

// A ring of `nodes`, some chords, room for a node that is not there, and pairs of absent edges behind the others.
struct SmallGraph {
  std::size_t nodes = 11, there = 10;
  std::vector<std::vector<double>> adjacent;  // each node its own neighbour
  Batch batch;

  explicit SmallGraph(const std::vector<std::pair<std::size_t, std::size_t>>& chords)
      : adjacent(nodes, std::vector<double>(nodes, 0)) {
    for (std::size_t i = 0; i < there; ++i) {
      const std::size_t next = (i + 1) % there;
      adjacent[i][i] = adjacent[i][next] = adjacent[next][i] = 1;
    }
    for (const auto& [a, b] : chords) adjacent[a][b] = adjacent[b][a] = 1;
    std::vector<std::int32_t> from, to;
    for (std::size_t i = 0; i < nodes; ++i) {
      for (std::size_t j = 0; j < nodes; ++j) {
        if (adjacent[i][j] == 0) continue;
        from.push_back(static_cast<std::int32_t>(i));
        to.push_back(static_cast<std::int32_t>(j));
      }
    }
    for (int absent = 0; absent < 3; ++absent) {
      from.push_back(static_cast<std::int32_t>(nodes));
      to.push_back(static_cast<std::int32_t>(nodes));
    }
    const auto pairs = static_cast<std::int64_t>(from.size());
    Batch::Ids& edges = batch.ids("edges", {2, pairs});
    std::copy(from.begin(), from.end(), edges.begin());
    std::copy(to.begin(), to.end(), edges.begin() + pairs);
    Batch::Numbers& degrees = batch.numbers("degrees", {static_cast<std::int64_t>(nodes)});
    for (std::size_t i = 0; i < nodes; ++i) degrees[i] = static_cast<float>(degree(i));
  }

  double degree(std::size_t i) const {
    double sum = 0;
    for (const double one : adjacent[i]) sum += one;
    return sum;
  }
};

// As the papers write them: x^T (I - D^-1/2 A D^-1/2) x over x^T x with whole matrices, and the mean over nodes of a
// node's mean distance from the others, cosine by cosine.
TEST(Smoothing, IsWhatThePapersDefine) {
  const SmallGraph graph({{0, 5}, {2, 7}, {2, 8}});
  constexpr std::size_t kWidth = 3;
  const RandomStream stream(5, "nodes");
  std::vector<double> x(graph.nodes * kWidth);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = stream.normal(i) + 0.5;
  const auto dot = [&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t c = 0; c < kWidth; ++c) sum += x[i * kWidth + c] * x[j * kWidth + c];
    return sum;
  };
  double quadratic = 0, square = 0, distance = 0;
  for (std::size_t i = 0; i < graph.there; ++i) {
    square += dot(i, i);
    double apart = 0;
    for (std::size_t j = 0; j < graph.there; ++j) {
      const double laplacian = (i == j ? 1 : 0) - graph.adjacent[i][j] / std::sqrt(graph.degree(i) * graph.degree(j));
      quadratic += laplacian * dot(i, j);
      if (i != j) apart += 1 - dot(i, j) / std::sqrt(dot(i, i) * dot(j, j));
    }
    distance += apart / static_cast<double>(graph.there - 1) / static_cast<double>(graph.there);
  }
  const NodeDifferences found = node_differences(graph.batch, x);
  EXPECT_NEAR(found.energy, quadratic / square, 1e-12);
  EXPECT_NEAR(found.distance, distance, 1e-12);
  EXPECT_GT(found.energy, 0.1);
  EXPECT_GT(found.distance, 0.1);
}

// Of a ring the eigenvalues are (1 + 2 cos(2 pi k / n)) / 3.
TEST(Smoothing, TheSecondEigenvalueOfARingIsKnown) {
  const SmallGraph ring({});
  const NodeDifferences found = node_differences(ring.batch, std::vector<double>(ring.nodes, 1.0));
  EXPECT_NEAR(found.second_eigenvalue, (1 + 2 * std::cos(2 * std::numbers::pi / 10)) / 3, 1e-9);
  EXPECT_NEAR(found.energy, 0, 1e-12) << "all have one degree";
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
