// Conclusions of an inspection say what the numbers support, and no more.
#include "norma/lab/inspect_words.h"

#include <gtest/gtest.h>

namespace norma {
namespace {

Series series_of(const std::string& scheme, const Estimate& deepest) {
  return {.scheme = scheme, .x = {24}, .y = {deepest}};
}

Findings amplification_of(const Estimate& post, const Estimate& pre) {
  Findings findings;
  Analysis& analysis = findings.analyses.emplace_back();
  analysis.name = "amplification";
  analysis.series = {series_of("post", post), series_of("pre", pre)};
  return findings;
}

TEST(InspectWords, SchemesAreToldApartOnlyByIntervalsThatDoNotOverlap) {
  const auto apart = conclude(amplification_of({4, 3, 5, 3}, {1, 0.5, 1.5, 3}));
  ASSERT_EQ(apart.size(), 1u);
  EXPECT_NE(apart[0].find("2.0 times as much as in pre"), std::string::npos) << apart[0];
  EXPECT_EQ(apart[0].find("overlap"), std::string::npos) << apart[0];
  const auto open = conclude(amplification_of({4, 1, 7, 3}, {1, 0.5, 1.5, 3}));
  EXPECT_NE(open[0].find("intervals overlap"), std::string::npos) << open[0];
}

TEST(InspectWords, ALawWhoseIntervalIncludesZeroIsOpen) {
  Findings findings;
  Analysis& analysis = findings.analyses.emplace_back();
  analysis.name = "gradient";
  analysis.series = {series_of("post", {1, 1, 1, 3})};
  analysis.series[0].exponent = Exponent{.value = -0.1, .low = -0.5, .high = 0.3};
  EXPECT_NE(conclude(findings).at(0).find("is open"), std::string::npos);
  analysis.series[0].exponent = Exponent{.value = -0.5, .low = -0.6, .high = -0.4};
  EXPECT_NE(conclude(findings).at(0).find("falls with depth as N^-0.50"), std::string::npos);
}

TEST(InspectWords, TheShareOfBranchesIsSaidBesideItsTheory) {
  Findings findings;
  Analysis& analysis = findings.analyses.emplace_back();
  analysis.name = "branch_share";
  analysis.series = {series_of("resnet_v2", {0.2, 0.2, 0.2, 3})};
  analysis.series[0].exponent = Exponent{.value = -0.48, .low = -0.55, .high = -0.4};
  analysis.series[0].theory = TheoryCurve{.y = {0.2}, .exponent = -0.5};
  EXPECT_EQ(conclude(findings).at(0),
            "The share of branches of resnet_v2 falls along the stack as l^-0.48 [-0.55, -0.40] of the rms of the "
            "stream, l^-0.96 of its variance (theory l^-0.50 and l^-1.00).");
  analysis.series[0].exponent->high = 0.1;
  EXPECT_NE(conclude(findings).at(0).find("is open (l^-0.48, [-0.55, 0.10]; theory l^-0.50)"), std::string::npos)
      << conclude(findings).at(0);
}

TEST(InspectWords, NothingMeasuredNothingSaid) { EXPECT_TRUE(conclude({}).empty()); }

}  // namespace
}  // namespace norma
