// Liu et al. 2020: in a Post-LN encoder-decoder the gradients of the decoder vanish towards its input, those of the
// encoder do not. And what the theory says of both stacks stands beside what was measured.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "lab/lab_check.h"
#include "norma/lab/gradient.h"
#include "norma/lab/inspect.h"

namespace norma {
namespace {

std::vector<std::vector<double>> by_layer(const GradientProfile& profile, const std::string& stack,
                                          std::int64_t layers) {
  std::vector<std::vector<double>> norms;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    norms.push_back(profile.at(fmt::format("{}.layers.{}.ffn.out.weight", stack, layer)).of_mean);
  return norms;
}

class VanishingGradients : public testing::Test {
 protected:
  static constexpr std::int64_t kLayers = 18;

  static GradientProfile measure(const char* scheme) {
    return measure_gradient(test::theory_subject(test::theory_model(scheme, kLayers, 64, 16, "encoder_decoder"), 3));
  }

  static double first_over_last(const std::vector<std::vector<double>>& norms) {
    return estimate_of(norms.front()).mean / estimate_of(norms.back()).mean;
  }
};

TEST_F(VanishingGradients, FallExponentiallyInAPostLNDecoderButNotInItsEncoder) {
  const GradientProfile profile = measure("post");
  const auto decoder = by_layer(profile, "decoder", kLayers), encoder = by_layer(profile, "encoder", kLayers);
  std::vector<double> layers(decoder.size());
  std::iota(layers.begin(), layers.end(), 0);
  const auto rate = exponential_law(layers, decoder);
  ASSERT_TRUE(rate.has_value());
  EXPECT_GT(rate->r2, 0.95);
  EXPECT_GT(rate->low, 0.1) << "a factor per layer, towards the output";
  EXPECT_LT(first_over_last(decoder), 0.02);
  EXPECT_GT(first_over_last(encoder), 0.3);
  EXPECT_LT(first_over_last(encoder), 3);
}

TEST_F(VanishingGradients, AreAbsentFromPreLN) {
  const GradientProfile profile = measure("pre");
  EXPECT_GT(first_over_last(by_layer(profile, "decoder", kLayers)), 1);
  EXPECT_LT(first_over_last(by_layer(profile, "decoder", kLayers)), 5);
}

class TheoryOfBothStacks : public testing::Test {
 protected:
  static constexpr std::int64_t kDeep = 8;

  static Findings measure(const char* scheme) {
    InspectOptions options{.schemes = {scheme}, .model = test::theory_model("pre", 1, 32, 16, "encoder_decoder")};
    options.depths = {4, kDeep};
    options.only = {"gradient", "stream", "amplification"};
    options.theory = true;
    options.open = [](const ModelConfig& model) { return random_data(model); };
    return inspect(options);
  }

  static const Series& series(const Findings& findings, const std::string& name) {
    const auto found = std::ranges::find(findings.analyses, name, &Analysis::name);
    if (found == findings.analyses.end()) fail("no analysis '{}'", name);
    return found->series[0];
  }

  static void expect_near(double predicted, double measured, double ratio, const std::string& where) {
    EXPECT_LT(predicted / measured, ratio) << where;
    EXPECT_GT(predicted / measured, 1 / ratio) << where;
  }

  // At every depth, and at every site of the deepest model.
  static void expect_near(const Series& measured, double ratio, std::size_t sites_of_encoder, std::size_t sites) {
    ASSERT_TRUE(measured.theory.has_value());
    for (std::size_t i = 0; i < measured.x.size(); ++i)
      expect_near(measured.theory->y[i], measured.y[i].mean, ratio, fmt::format("{} layers", measured.x[i]));
    const LayerProfile& profile = measured.profiles.back();
    ASSERT_EQ(profile.sites.size(), sites);
    ASSERT_EQ(profile.theory.size(), sites);
    for (std::size_t i = 0; i < sites; ++i) {
      EXPECT_EQ(profile.sites[i].starts_with("encoder."), i < sites_of_encoder) << profile.sites[i];
      expect_near(profile.theory[i], profile.y[i].mean, ratio, profile.sites[i]);
    }
  }
};

TEST_F(TheoryOfBothStacks, StandsBesideStreamAndGradientOfEveryLayer) {
  for (const char* scheme : {"pre", "deepnorm"}) {
    SCOPED_TRACE(scheme);
    const Findings findings = measure(scheme);
    expect_near(series(findings, "stream"), 1.2, 2 * kDeep, 5 * kDeep);
    expect_near(series(findings, "branch_share"), 1.35, 2 * kDeep, 5 * kDeep);
    expect_near(series(findings, "gradient_batch"), 1.6, kDeep, 2 * kDeep);
    const Series& amplification = series(findings, "amplification");
    ASSERT_TRUE(amplification.theory.has_value());
    for (std::size_t i = 0; i < amplification.x.size(); ++i)
      expect_near(amplification.theory->y[i], amplification.y[i].mean, 1.6, "amplification");
    EXPECT_TRUE(std::any_of(findings.notes.begin(), findings.notes.end(), [](const std::string& note) {
      return note.find("docs/theory.md says how far off") != std::string::npos;
    })) << fmt::format("{}", fmt::join(findings.notes, "\n"));
  }
}

// The stream of a decoder begins anew: one law through both stacks would be a law of neither.
TEST_F(TheoryOfBothStacks, TheLawAlongSitesIsThatOfTheDecoder) {
  const Findings findings = measure("pre");
  const Series& stream = series(findings, "stream");
  std::vector<double> place;
  std::vector<std::vector<double>> decoder;
  for (std::size_t k = 3; k < 3 * kDeep; ++k) {
    place.push_back(static_cast<double>(k + 1));
    decoder.push_back({stream.profiles.back().y[2 * kDeep + k].mean});
  }
  EXPECT_NEAR(stream.exponent->value, power_law(place, decoder)->value, 0.01) << "the mean of the seeds' exponents";
}

TEST_F(TheoryOfBothStacks, IsANoteWhereNoRuleCoversTheScheme) {
  const Findings findings = measure("ngpt");
  EXPECT_FALSE(series(findings, "stream").theory.has_value());
  ASSERT_EQ(findings.notes.size(), 1u);
  EXPECT_NE(findings.notes[0].find("no theory"), std::string::npos) << findings.notes[0];
}

}  // namespace
}  // namespace norma
