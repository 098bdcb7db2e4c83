// Liu et al. 2020: in a Post-LN encoder-decoder the gradients of the decoder vanish towards its input, those of the
// encoder do not.
#include <gtest/gtest.h>

#include <numeric>

#include "lab/lab_check.h"
#include "norma/lab/gradient.h"

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
    return measure_gradient(
        test::theory_subject(test::theory_model(scheme, kLayers, 64, 16, Family::encoder_decoder), 3));
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

}  // namespace
}  // namespace norma
