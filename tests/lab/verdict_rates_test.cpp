// Verdicts that hang on which rates, warmups and lengths were tried.
#include <gtest/gtest.h>

#include "lab/study/describe.h"
#include "lab/study/parts.h"
#include "lab/study/verdict.h"
#include "lab/verdict_check.h"
#include "norma/lab/study.h"

namespace norma {
namespace {

using test::around;
using test::evidence;
using test::fails;
using test::trains;
using test::verdict_of;

TEST(Verdict, WarnsOfARateAtTheEdgeOfTheGrid) {
  const auto words = [](std::vector<TrainedCell> cells) {
    const std::vector<SchemeEvidence> all = {evidence("a", std::move(cells))};
    const std::vector<Verdict> verdicts = judge_schemes(all);
    return verdicts[0].words + " " + advise(all, verdicts, StudyScale{.tuning_seeds = 3}).words;
  };
  const std::string high = words({trains(1e-3, 0, 2.2), trains(1e-2, 0, 1.9)});
  EXPECT_NE(high.find(", the largest rate tried"), std::string::npos) << high;
  EXPECT_NE(high.find("a wider grid may change the order"), std::string::npos) << high;
  EXPECT_NE(words({trains(1e-3, 0, 1.8), trains(1e-2, 0, 1.9)}).find("smallest rate tried"), std::string::npos);
  EXPECT_EQ(words({trains(1e-3, 0, 2), trains(1e-2, 0, 1.9), trains(1e-1, 0, 2)}).find("rate tried"),
            std::string::npos);
}

TEST(Verdict, ARateBeyondContinuesTheGrid) {
  const std::vector<double> grid = {1e-3, 3e-3, 1e-2, 3e-2};
  EXPECT_EQ(rate_beyond(grid, RateEdge::largest), 0.1);
  EXPECT_EQ(rate_beyond(grid, RateEdge::smallest), 3e-4);
  EXPECT_EQ(rate_beyond({3e-3, 1e-2, 3e-2, 1e-1}, RateEdge::largest), 0.3);
  EXPECT_EQ(rate_beyond({1e-3, 2e-3}, RateEdge::largest), 4e-3);
  EXPECT_EQ(rate_beyond({1e-3, 2e-3}, RateEdge::smallest), 5e-4);
  EXPECT_EQ(rate_beyond({3e-3, 1e-2}, RateEdge::largest), 0.033);
  EXPECT_EQ(rate_beyond({1, 1.001}, RateEdge::largest), 1.002) << "a fine grid";
  EXPECT_EQ(rate_beyond(grid, RateEdge::none), std::nullopt);
  EXPECT_EQ(rate_beyond({1e-3}, RateEdge::largest), std::nullopt);
  EXPECT_EQ(rate_beyond({0, 1e-3}, RateEdge::smallest), std::nullopt) << "there is none below 0";
  EXPECT_EQ(rate_beyond({1, 1e6}, RateEdge::largest), std::nullopt);
}

TEST(Verdict, TheEdgeIsThatOfTheBestOrOfTheLeastBad) {
  const auto edge = [](std::vector<TrainedCell> cells) { return edge_of_best(evidence("a", std::move(cells))); };
  EXPECT_EQ(edge({trains(1e-3, 0, 2.2), trains(1e-2, 0, 1.9)}), RateEdge::largest);
  EXPECT_EQ(edge({trains(1e-3, 0, 1.8), trains(1e-2, 0, 1.9)}), RateEdge::smallest);
  EXPECT_EQ(edge({trains(1e-3, 0, 2), trains(1e-2, 40, 1.9), fails(1e-1, 0, 3)}), RateEdge::none);
  EXPECT_EQ(edge({trains(1e-3, 0, 2), trains(1e-3, 40, 1.9)}), RateEdge::none) << "one rate has no edge";
  EXPECT_EQ(edge({fails(1e-3, 0, 3), fails(1e-2, 0, 1)}), RateEdge::smallest) << "everything diverges";
  std::vector<TrainedCell> at_once = {fails(1e-3, 0, 3), fails(1e-2, 0, 3)};
  for (TrainedCell& cell : at_once) cell.at_once = 3;
  EXPECT_EQ(edge(at_once), RateEdge::none) << "in its first step, which no rate changes";
  TrainedCell slow = fails(1e-2, 0, 0);  // learned nothing, but did not diverge
  slow.loss = around(2.7, 0.01);
  EXPECT_EQ(edge({fails(1e-3, 0, 1), slow}), RateEdge::largest);
  EXPECT_EQ(edge({}), RateEdge::none);
}

TEST(Verdict, RatesThatOnlyOneSchemeTriedDoNotMakeItNarrow) {
  SchemeEvidence one = evidence("a", {trains(1e-3, 0, 2), trains(1e-2, 0, 1.9), fails(1e-1, 0, 3), fails(1, 0, 3)});
  one.cells.push_back(fails(10, 0, 3));
  EXPECT_EQ(verdict_of(one), "narrow");
  one.cells[3].extra = one.cells[4].extra = true;
  EXPECT_EQ(verdict_of(one), "stable");
  const std::string words = judge_schemes({one})[0].words;
  EXPECT_NE(words.find("trains in 2 of the 3 settings that all schemes share"), std::string::npos) << words;
}

// As Post-LN of a default study: at guessing level in every run of the map, but below it in those of the races.
TEST(Verdict, WhatTrainsInLongerRunsThanThoseOfTheMapStartsLate) {
  TrainedCell stuck = fails(1e-3, 0, 0);
  stuck.loss = around(3, 0.01);
  SchemeEvidence late = evidence("a", {stuck, fails(1e-2, 0, 3)});
  late.map_steps = 100;
  late.training = Training::trains;
  late.final = FinalEvidence{.lr = 3e-4, .steps = 180, .loss = {2.4, 2.3, 2.5, 10}, .seeds = 10};
  late.effective_depth = Estimate{10.9, 10.5, 11.3, 3};
  late.depth_layers = 12;
  EXPECT_EQ(verdict_of(late), "starts late");
  const std::string words = judge_schemes({late})[0].words;
  EXPECT_NE(words.find("trains in none of the 2 settings tried, in runs of 100 steps"), std::string::npos) << words;
  EXPECT_NE(words.find("uses 10.9 of its 12 layers (10.5 to 11.3) for what it learned"), std::string::npos) << words;
  late.cells[0] = fails(1e-3, 0, 1);
  EXPECT_EQ(verdict_of(late), "narrow") << "it did start, and diverged";
}

TEST(Verdict, WhatWarmupBringsIsSaidOfTheRunsThatShowIt) {
  SchemeEvidence one = evidence("a", {trains(1e-3, 0, 2.5), trains(1e-3, 100, 2)});
  one.final = FinalEvidence{.lr = 1e-3, .warmup = 100, .steps = 800, .loss = {2.6, 2.5, 2.7, 5}, .seeds = 5};
  const std::string words = judge_schemes({one})[0].words;
  EXPECT_NE(words.find("reaches 2.600 (2.500 to 2.700) after 800 steps"), std::string::npos) << words;
  EXPECT_NE(words.find("short runs reach 2.000 with warmup and 2.500 without"), std::string::npos) << words;
  EXPECT_EQ(verdict_of(one), "needs warmup");
  one.final->warmup = 0;
  EXPECT_EQ(verdict_of(one), "stable") << "the races chose to do without";
}

}  // namespace
}  // namespace norma
