// What depth does to graph networks on Cora: plain GCN loses its accuracy between 2 and 32 layers, PairNorm and GCNII
// do not. Skipped where the data are not there ($NORMA_DATA, or the collection beside the repository).
#include <gtest/gtest.h>

#include <cmath>

#include "data/files.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"

namespace norma {
namespace {

struct Accuracy {
  double mean = 0, half = 0;  // of a 95 % interval over seeds
};

// On the test nodes of the public split, seeds side by side.
Accuracy accuracy_after(const char* scheme, std::int64_t layers, std::int64_t steps) {
  RunConfig config;
  config.model.family = "gcn";
  config.model.layers = layers;
  config.model.width = 32;
  config.model.scheme = scheme;
  config.model.head_std = 0.2;
  config.train.lr = 5e-3;
  if (std::string_view(scheme) == "pairnorm") config.model.constants["s"] = 4;
  config.train.steps = steps;
  config.train.optimiser.weight_decay = 0.05;
  config.train.schedule.warmup = 0;
  config.train.probes = false;
  config.members.seed = {1, 2, 3};
  config.data.task = "planetoid";
  config.data.path = shared_data("cora/planetoid_nodes.tsv.gz");
  config.data.target_path = shared_data("cora/planetoid_edges.tsv");
  config.data.held_out = "odd";
  Cohort cohort(config, open_data(config));
  while (cohort.step() < steps) cohort.train_step(Watching::no);
  cohort.evaluate();
  std::vector<double> shares;
  for (int member = 0; member < 3; ++member) shares.push_back(*cohort.member(member).evaluation_accuracy);
  Accuracy found;
  for (const double share : shares) found.mean += share / 3;
  double variance = 0;
  for (const double share : shares) variance += (share - found.mean) * (share - found.mean) / 2;
  found.half = 4.303 * std::sqrt(variance / 3);
  std::printf("%s, %lld layers: accuracy %.3f +- %.3f over 3 seeds\n", scheme, static_cast<long long>(layers),
              found.mean, found.half);
  return found;
}

TEST(GraphDepth, CollapsesPlainGcnOnCoraAndNotPairNormOrGcnII) {
  if (shared_data("cora/planetoid_edges.tsv").empty()) GTEST_SKIP() << "no Cora: set NORMA_DATA";
  constexpr std::int64_t kSteps = 150;
  const Accuracy shallow = accuracy_after("gcn", 2, kSteps), deep = accuracy_after("gcn", 32, kSteps);
  EXPECT_GT(shallow.mean, 0.65);
  EXPECT_LT(deep.mean + deep.half, shallow.mean - shallow.half) << "beyond what seeds scatter";
  EXPECT_LT(deep.mean, shallow.mean - 0.2);
  for (const char* scheme : {"pairnorm", "gcnii"}) {
    const Accuracy kept = accuracy_after(scheme, 32, kSteps);
    EXPECT_GT(kept.mean, deep.mean + 0.1) << scheme;
  }
}

}  // namespace
}  // namespace norma
