// Xiong et al. 2020, on real attention: the last layer's gradient does not depend on depth in Post-LN and falls like
// L^-1/2 in Pre-LN.
#include "norma/lab/gradient.h"

#include <gtest/gtest.h>

#include "lab/lab_check.h"

namespace norma {
namespace {

struct Law {
  const char* scheme;
  double low, high;
};

class GradientLaw : public testing::TestWithParam<Law> {};

TEST_P(GradientLaw, OfTheLastLayerInDepth) {
  const Law& law = GetParam();
  const std::vector<double> depths = {6, 12, 24, 48};
  std::vector<std::vector<double>> norms;
  for (const double depth : depths) {
    const auto layers = static_cast<std::int64_t>(depth);
    const Subject subject = test::theory_subject(test::theory_model(law.scheme, layers), 4);
    norms.push_back(measure_gradient(subject).at("layers." + std::to_string(layers - 1) + ".ffn.out.weight").of_mean);
  }
  const auto slope = power_law(depths, norms);
  ASSERT_TRUE(slope.has_value());
  EXPECT_GT(slope->value, law.low) << "[" << slope->low << ", " << slope->high << "]";
  EXPECT_LT(slope->value, law.high) << "[" << slope->low << ", " << slope->high << "]";
  RecordProperty("slope", std::to_string(slope->value));
}

INSTANTIATE_TEST_SUITE_P(Of, GradientLaw,
                         testing::Values(Law{"post", -0.1, 0.1}, Law{"pre", -0.65, -0.40},
                                         Law{"deepnorm", -0.60, -0.40}),
                         [](const auto& test) { return test.param.scheme; });

}  // namespace
}  // namespace norma
