// Amplification (Liu et al. 2020) and the first optimiser step (Wang et al. 2022) on real attention.
#include "norma/lab/amplification.h"

#include <gtest/gtest.h>

#include "lab/lab_check.h"

namespace norma {
namespace {

double mean_of(const std::vector<double>& values) { return estimate_of(values).mean; }

double amplification(const char* scheme, std::int64_t layers) {
  ModelConfig model = test::theory_model(scheme, layers, 64, 64);
  model.batch = 1;
  return mean_of(measure_amplification(test::theory_subject(model, 4)).output);
}

double growth_of_amplification(const char* scheme) {
  const double growth = amplification(scheme, 100) / amplification(scheme, 10);
  testing::Test::RecordProperty(fmt::format("growth_{}", scheme), fmt::format("{:.3g}", growth));
  return growth;
}

TEST(Amplification, GrowsLikeTheNumberOfSublayersInPostLN) { EXPECT_GE(growth_of_amplification("post"), 6); }
TEST(Amplification, GrowsLikeItsLogarithmInPreLN) { EXPECT_LE(growth_of_amplification("pre"), 2.5); }
TEST(Amplification, GrowsLikeItsLogarithmInAdmin) { EXPECT_LE(growth_of_amplification("admin"), 2.5); }

FirstStep first_step(const char* scheme, std::int64_t layers) {
  ModelConfig model = test::theory_model(scheme, layers, 64, 16);
  model.batch = 1;
  return measure_first_step(test::theory_subject(model, 4));
}

TEST(FirstStep, OfSgdGrowsWithDepthInPostLNButHardlyInDeepNorm) {
  const double post = mean_of(first_step("post", 100).sgd) / mean_of(first_step("post", 2).sgd);
  const double deepnorm = mean_of(first_step("deepnorm", 100).sgd) / mean_of(first_step("deepnorm", 2).sgd);
  RecordProperty("growth", fmt::format("Post-LN {:.3g}, DeepNorm {:.3g}", post, deepnorm));
  EXPECT_GT(post, 50);
  EXPECT_LT(deepnorm, 5);
}

// The deviation of ln amplification over 24 networks.
double scatter(const char* scheme, std::int64_t layers) {
  const Subject subject = test::theory_subject(test::theory_model(scheme, layers, 32, 16, "decoder"), 24);
  std::vector<double> logs;
  for (const double one : measure_amplification(subject).output) logs.push_back(std::log(one));
  const auto n = static_cast<double>(logs.size());
  double mean = 0, square = 0;
  for (const double one : logs) mean += one / n;
  for (const double one : logs) square += (one - mean) * (one - mean) / (n - 1);
  return std::sqrt(square);
}

// docs/theory.md: 0.67 sqrt(sublayers/width), and less in Pre-LN.
TEST(AmplificationLaw, OfPostLNScattersTheMoreTheDeeper) {
  for (const std::int64_t layers : {6, 24}) {
    const double law = 0.67 * std::sqrt(2 * static_cast<double>(layers) / 32), post = scatter("post", layers);
    RecordProperty(fmt::format("post_{}", layers), fmt::format("{:.3f}", post));
    EXPECT_GT(post, law / 1.5) << layers;
    EXPECT_LT(post, law * 1.5) << layers;
    EXPECT_GT(post, 1.2 * scatter("pre", layers)) << layers;
  }
}

}  // namespace
}  // namespace norma
