// From made-up evidence to words.
#include "lab/study/verdict.h"
#include "lab/study/describe.h"

#include <gtest/gtest.h>

#include <sstream>

#include "lab/study/parts.h"
#include "norma/lab/study.h"

namespace norma {
namespace {

Estimate around(double mean, double half) { return {mean, mean - half, mean + half, 3}; }

TrainedCell trains(double lr, std::int64_t warmup, double loss, double half = 0.01) {
  return {.lr = lr, .warmup = warmup, .loss = around(loss, half), .runs = 3, .diverged = 0, .not_learned = 0};
}
TrainedCell fails(double lr, std::int64_t warmup, int diverged) {
  return {.lr = lr, .warmup = warmup, .loss = {}, .runs = 3, .diverged = diverged, .not_learned = 3 - diverged};
}

SchemeEvidence evidence(const std::string& name, std::vector<TrainedCell> cells) {
  return {.scheme = name, .title = name, .layers = 12, .cells = std::move(cells)};
}

std::string_view verdict_of(const SchemeEvidence& one) { return name_of(judge_schemes({one})[0].verdict); }

TEST(Verdict, FollowsWhatTrained) {
  EXPECT_EQ(verdict_of(evidence("a", {trains(1e-3, 0, 2), trains(1e-3, 100, 2)})), "stable");
  EXPECT_EQ(verdict_of(evidence("a", {fails(1e-3, 0, 3), trains(1e-3, 100, 2)})), "needs warmup");
  EXPECT_EQ(verdict_of(evidence("a", {trains(1e-3, 0, 2.5), trains(1e-3, 100, 2)})), "needs warmup");
  EXPECT_EQ(verdict_of(evidence("a", {trains(1e-3, 0, 2.04), trains(1e-3, 100, 2)})), "stable") << "too little";
  EXPECT_EQ(verdict_of(evidence("a", {trains(1e-3, 0, 2.5, 1), trains(1e-3, 100, 2)})), "stable") << "too unsure";
  TrainedCell without = trains(1e-3, 0, 2.5, 1), with = trains(1e-3, 100, 2);
  without.losses = {2.4, 2.6};
  with.losses = {2.3, 1.7};
  EXPECT_EQ(verdict_of(evidence("a", {without, with})), "needs warmup") << "at every seed";
  without.losses = {2.3, 2.6};
  EXPECT_EQ(verdict_of(evidence("a", {without, with})), "stable") << "not at the first";
  EXPECT_EQ(verdict_of(evidence("a", {fails(1e-3, 0, 3), fails(1e-3, 100, 1)})), "diverges");
  TrainedCell stuck = fails(1e-3, 0, 0);
  stuck.loss = around(3, 0.01);
  SchemeEvidence short_runs = evidence("a", {stuck, fails(1e-2, 0, 3)});
  EXPECT_EQ(verdict_of(short_runs), "not enough training to tell") << "short runs show no such thing";
  short_runs.training = Training::stuck;
  EXPECT_EQ(verdict_of(short_runs), "does not train");
  short_runs.training = Training::late;
  EXPECT_EQ(verdict_of(short_runs), "starts late");
  EXPECT_EQ(verdict_of(evidence("a", {trains(1e-3, 0, 2), fails(1e-2, 0, 3), fails(1e-1, 0, 3)})), "narrow");
  EXPECT_EQ(verdict_of(evidence("a", {})), "untested");
}

RunOutcome ended(const std::string& scheme, Outcome outcome, double loss) {
  RunOutcome run{.id = scheme, .scheme = scheme, .layers = 12, .lr = 1e-3};
  run.status = RunStatus::finished;
  run.outcome = outcome;
  run.evaluation_loss = loss;
  run.unigram_entropy = 3;
  run.optimum = 1;
  return run;
}

TEST(Verdict, ALossBelowTheOptimumIsAnErrorAndNoWin) {
  std::vector<SchemeEvidence> all = {evidence("good", {}), evidence("bad", {})};
  const Outcomes runs = {ended("good", Outcome::stable, 1.5), ended("bad", Outcome::below_optimum, 0.3)};
  gather_cells(all, runs, {1e-3});
  const std::vector<Verdict> verdicts = judge_schemes(all);
  EXPECT_EQ(verdicts[0].scheme, "good");
  EXPECT_EQ(verdicts[1].verdict, Judgement::below_optimum);
  EXPECT_EQ(verdicts[1].rank, 0);
  EXPECT_NE(verdicts[1].words.find("below 1.000, the optimum"), std::string::npos) << verdicts[1].words;
  EXPECT_TRUE(verdicts[1].evidence.empty());
  const Advice advice = advise(all, verdicts, {.tuning_seeds = 1});
  EXPECT_EQ(advice.ranking, std::vector<std::string>{"good"});
  EXPECT_NE(advice.words.find("Left out: bad"), std::string::npos) << advice.words;
  // The same runs as a sweep.
  for (const Tuned& one : tuned(runs)) EXPECT_EQ(one.lr.has_value(), one.scheme == "good") << one.scheme;
  ASSERT_EQ(fault_notes(runs).size(), 1u);
  EXPECT_NE(fault_notes(runs)[0].find("bad, 12 layers: 1 of 1 runs ended below the optimum"), std::string::npos);
  EXPECT_NE(fault_notes({ended("bad", Outcome::leaks, 0.3)})[0].find("leaks"), std::string::npos);
}

TEST(Verdict, SaysInWordsWhatItRestsOn) {
  SchemeEvidence post = evidence("post", {fails(1e-3, 0, 0), fails(1e-2, 100, 1)});
  post.training = Training::stuck;
  post.long_steps = 3000;
  post.rates_at_guessing = {3e-4, 1e-3};
  post.gradient = {.exponent = Exponent{0.02, -0.1, 0.1}};
  post.amplification = {.exponent = Exponent{1.0, 0.9, 1.1}, .theory = 0.98};
  const Verdict verdict = judge_schemes({post})[0];
  EXPECT_EQ(
      verdict.words,
      "post: does not train at 12 layers: after 3000 steps at 0.0003 and 0.001 it still does no better than guessing "
      "(of 6 short runs 1 diverged and 5 ended no better than guessing); the gradient of the last layer at init does "
      "not change with depth, L^0.02 (-0.10 to 0.10); amplification grows "
      "with depth as N^1.00 (0.90 to 1.10, theory 0.98).");
  ASSERT_EQ(verdict.evidence.size(), 2u);
  EXPECT_EQ(verdict.evidence[1].value, 1.0);
  EXPECT_EQ(verdict.evidence[1].high, 1.1);
  post.training = Training::unclear;
  post.budget_to_tell = "--budget 12min";
  EXPECT_NE(judge_schemes({post})[0].words.find("not enough training to tell"), std::string::npos);
  EXPECT_NE(judge_schemes({post})[0].words.find("--budget 12min would tell"), std::string::npos);
  post.budget_to_tell = "";
  post.rates_above_guessing = {1e-6};
  EXPECT_NE(judge_schemes({post})[0].words.find("after 3000 steps at 1e-06 it was still above guessing level"),
            std::string::npos)
      << judge_schemes({post})[0].words;
  const Advice advice = advise({post}, judge_schemes({post}), {});
  EXPECT_NE(advice.words.find("Try larger rates, as runs were still above guessing level."), std::string::npos)
      << advice.words;
}

TEST(Verdict, StatesOnlyLawsThatTheSeedsSettle) {
  const auto words = [](const DepthLaw& law) {
    SchemeEvidence one = evidence("a", {});
    one.amplification = law;
    return judge_schemes({one})[0].words;
  };
  EXPECT_EQ(words({.exponent = Exponent{1.79, -1.35, 4.93}, .theory = 0.76}),
            "a: was not trained; how amplification changes with depth is not settled, N^1.79 (-1.35 to 4.93, theory "
            "0.76).");
  EXPECT_NE(words({.exponent = Exponent{0.05, -0.4, 0.5}}).find("not settled"), std::string::npos)
      << "flat, but unsure";
  EXPECT_NE(words({.exponent = Exponent{0.02, -0.19, 0.23}}).find("not settled"), std::string::npos)
      << "as on the page of the report";
  EXPECT_NE(words({.exponent = Exponent{-0.5, -0.6, -0.4}}).find("shrinks with depth as N^-0.50"), std::string::npos);
  EXPECT_NE(words({.exponent = Exponent{0.7, 0.7, 0.7}}).find("grows with depth as N^0.70."), std::string::npos)
      << "one seed and two depths have no interval";
  EXPECT_EQ(words({.zero = true}), "a: was not trained; amplification is exactly 0.");
  EXPECT_EQ(words({}), "a: was not trained.");
}

TEST(Verdict, LawsComeFromTheAnalysesAtInit) {
  std::vector<SchemeEvidence> all = {evidence("pre", {}), evidence("rezero", {})};
  Analysis gradient;
  gradient.name = "gradient";
  gradient.series.push_back({.scheme = "rezero", .x = {2, 4}, .y = {Estimate{0, 0, 0, 8}, Estimate{0, 0, 0, 8}}});
  gradient.series.push_back({.scheme = "pre",
                             .x = {2, 4},
                             .y = {around(1, 0.1), around(0.7, 0.1)},
                             .exponent = Exponent{-0.5, -0.6, -0.4},
                             .theory = TheoryCurve{{1, 0.7}, -0.51}});
  gather_laws(all, gradient);
  EXPECT_TRUE(all[1].gradient.zero);
  EXPECT_FALSE(all[0].gradient.zero);
  EXPECT_EQ(all[0].gradient.exponent->value, -0.5);
  EXPECT_EQ(all[0].gradient.theory, -0.51);
  EXPECT_FALSE(all[0].amplification.exponent.has_value());
  EXPECT_EQ(seeds_at_init({5, 2}), (std::vector<std::uint64_t>{5, 2, 1, 3, 4, 6, 7, 8}));
  EXPECT_EQ(seeds_at_init({1, 2, 3, 4, 5, 6, 7, 8, 9}).size(), 9u);
}

TEST(Verdict, RanksByTheBestLossAndTheOthersLast) {
  const std::vector<Verdict> verdicts =
      judge_schemes({evidence("bad", {fails(1e-3, 0, 3)}), evidence("good", {trains(1e-3, 0, 2.0)}),
                     evidence("best", {trains(1e-3, 0, 2.2), trains(1e-2, 0, 1.9)})});
  EXPECT_EQ(verdicts[0].scheme, "best");
  EXPECT_EQ(verdicts[1].scheme, "good");
  EXPECT_EQ(verdicts[2].scheme, "bad");
  EXPECT_EQ(verdicts[2].rank, 3);
}

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

SchemeEvidence finalist(const std::string& name, double loss, std::vector<TrainedCell> cells,
                        std::vector<std::string> tied = {}) {
  SchemeEvidence one = evidence(name, std::move(cells));
  one.final =
      FinalEvidence{.lr = 1e-3, .warmup = 40, .steps = 800, .loss = around(loss, 0.1), .seeds = 5, .margin = true};
  one.final->tied_with = std::move(tied);
  return one;
}

Advice advice_for(const std::vector<SchemeEvidence>& all, const StudyScale& scale = {.tuning_seeds = 3}) {
  return advise(all, judge_schemes(all), scale);
}

TEST(Advice, RestsOnTheFinalAndStatesItsScale) {
  const std::vector<SchemeEvidence> apart = {finalist("a", 1.9, {trains(1e-3, 40, 1.9)}),
                                             finalist("b", 2.5, {trains(1e-3, 0, 1.5)})};
  const Advice clear =
      advice_for(apart, {.data = "grammar", .width = 32, .parameters = 107'000, .tokens_per_step = 256});
  EXPECT_EQ(
      clear.words,
      "At 12 layers use a with a peak rate near 0.001 and 40 steps of warmup. Measured at 12 layers, width 32 (107k "
      "parameters), 800 steps of 256 tokens on grammar, 5 seeds.");
  EXPECT_NE(clear.confidence.find("every paired difference"), std::string::npos);
  EXPECT_EQ(clear.ranking, (std::vector<std::string>{"a", "b"})) << "whatever short runs say";
}

TEST(Advice, OfTiedSchemesTheOneThatTrainsInMostSettings) {
  const std::vector<SchemeEvidence> tied = {finalist("a", 1.90, {trains(1e-3, 0, 2), fails(1e-2, 0, 3)}, {"b"}),
                                            finalist("b", 1.95, {trains(1e-3, 0, 2), trains(1e-2, 0, 2)}, {"a"})};
  const Advice advice = advice_for(tied);
  EXPECT_TRUE(advice.words.starts_with(
      "At 12 layers use b with a peak rate near 0.001 and 40 steps of warmup; a is tied with it."))
      << advice.words;
  EXPECT_NE(advice.words.find("a cannot be distinguished from it and has the lower mean"), std::string::npos)
      << advice.words;
  EXPECT_NE(advice.confidence.find("Confidence is low between the tied schemes"), std::string::npos)
      << advice.confidence;
  EXPECT_NE(advice.confidence.find("paired difference between b and a includes 0"), std::string::npos)
      << "of the scheme that is advised: " << advice.confidence;
  EXPECT_EQ(advice.confidence.find("held-out batch"), std::string::npos) << advice.confidence;
  std::vector<SchemeEvidence> one_graph = tied;
  for (SchemeEvidence& scheme : one_graph) scheme.final->batches = 1;
  EXPECT_NE(advice_for(one_graph).confidence.find("judged on one held-out batch"), std::string::npos);
  for (SchemeEvidence& scheme : one_graph) scheme.final->tied_with.clear();
  EXPECT_TRUE(advice_for(one_graph).confidence.starts_with(
      "Confidence is fair on these held-out data alone, for this setting: over"))
      << advice_for(one_graph).confidence;
  EXPECT_NE(advice_for(one_graph, {.judged_on_tuning_data = true}).confidence.find("which also chose the settings"),
            std::string::npos);
  EXPECT_EQ(advice_for(one_graph).confidence.find("also chose"), std::string::npos);
  EXPECT_EQ(advice.ranking[0], "a") << "the order is that of the losses";
}

TEST(Advice, ASchemeAloneIsNotSaidToLeadAndALayerIsNotALayers) {
  std::vector<SchemeEvidence> alone = {evidence("a", {trains(1e-3, 0, 2)})};
  alone[0].layers = 1;
  const Advice advice = advice_for(alone);
  EXPECT_TRUE(advice.words.starts_with("At 1 layer, short runs of a did best with a peak rate near 0.001"))
      << advice.words;
  EXPECT_EQ(advice.not_tested[0], "training at depths other than 1 layer");
  alone.push_back(evidence("b", {trains(1e-3, 0, 2.5)}));
  EXPECT_TRUE(advice_for(alone).words.starts_with("Undecided at 1 layer: in short runs a did best"));
}

TEST(Advice, OfSchemesThatAreOneModelNoBudgetTellsMore) {
  std::vector<SchemeEvidence> twins = {finalist("a", 1.9, {trains(1e-3, 0, 2)}, {"b"}),
                                       finalist("b", 1.9, {trains(1e-3, 0, 2)}, {"a"})};
  EXPECT_NE(advice_for(twins).confidence.find("a larger budget may tell"), std::string::npos);
  for (SchemeEvidence& one : twins) one.final->same_as = one.final->tied_with;
  const std::string words = advice_for(twins).confidence;
  EXPECT_TRUE(
      words.starts_with("No budget would tell the tied schemes apart: a and b have the same losses to the last digit"))
      << words;
  EXPECT_EQ(words.find("may tell"), std::string::npos) << words;
}

TEST(Advice, ALeadThatMayTurnAroundIsALeadAtItsLength) {
  std::vector<SchemeEvidence> all = {finalist("a", 1.9, {trains(1e-3, 40, 1.9)}),
                                     finalist("b", 2.5, {trains(1e-3, 0, 2.5)})};
  all[0].final->ahead_for_now = {"b"};
  all[0].map_steps = 100;
  const Advice advice = advice_for(all);
  EXPECT_TRUE(
      advice.words.starts_with("For runs of 800 steps at 12 layers use a with a peak rate near 0.001 and 40 steps of "
                               "warmup; longer runs may turn this around. "))
      << advice.words;
  EXPECT_NE(advice.confidence.find("b may catch up within"), std::string::npos) << advice.confidence;
  all[0].map_steps = 800;  // there was no race, so nothing is known about the pace
  EXPECT_NE(advice_for(all).confidence.find("no runs were longer"), std::string::npos) << advice_for(all).confidence;
  EXPECT_TRUE(judge_schemes(all)[0].words.find("ahead of b at this length") != std::string::npos);
}

TEST(Advice, AFinalOfOneComparesNothing) {
  const std::vector<SchemeEvidence> one = {finalist("a", 1.9, {trains(1e-3, 40, 1.9)}),
                                           evidence("b", {fails(1e-3, 0, 3)})};
  EXPECT_NE(advice_for(one).confidence.find("nothing to compare it with"), std::string::npos);
}

TEST(Advice, OneThatTrainsWhileOthersMayOnlyNeedLongerIsNoChoice) {
  std::vector<SchemeEvidence> all = {finalist("a", 1.9, {trains(1e-3, 40, 1.9)}), evidence("b", {fails(1e-3, 0, 0)})};
  all[1].training = Training::unclear;
  const Advice open = advice_for(all);
  EXPECT_TRUE(open.words.starts_with("Undecided at 12 layers: a alone was below guessing level")) << open.words;
  EXPECT_EQ(open.choice, "");
  all[1].training = Training::stuck;  // that was found out
  EXPECT_EQ(advice_for(all).choice, "a");
  EXPECT_TRUE(advice_for(all).words.starts_with("At 12 layers use a")) << advice_for(all).words;
}

TEST(Advice, RightAnswersStandBesideThoseThatNeedNoModel) {
  const auto words = [](std::optional<double> most_frequent) {
    Results results = new_results(ResultsKind::study);
    results.advice.choice = "a";
    results.advice.ranking = {"a"};
    results.verdicts.push_back({.scheme = "a", .words = "reaches 1.9."});
    results.tuned.resize(1);
    results.tuned[0].scheme = "a";
    results.tuned[0].accuracy = Estimate{0.235, 0.22, 0.25, 5};
    say_accuracy(results, most_frequent);
    return results.advice.words;
  };
  EXPECT_EQ(words(0.229),
            " With it 23.5 % of held-out answers are right (22.0 to 25.0); the most frequent answer alone has 22.9 %.");
  EXPECT_EQ(words({}), " With it 23.5 % of held-out answers are right (22.0 to 25.0).");
}

TEST(Advice, NamesASchemeWithClearlyMoreRightAnswers) {
  const auto words = [](const Estimate& less, bool ranked = true) {
    Results results = new_results(ResultsKind::study);
    results.advice.choice = "a";
    results.advice.ranking = ranked ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"a"};
    results.tuned.resize(2);
    results.tuned[0].scheme = "a";
    results.tuned[0].accuracy = Estimate{0.90, 0.88, 0.92, 5};
    results.tuned[1].scheme = "b";
    results.tuned[1].accuracy = Estimate{0.95, 0.91, 0.98, 5};
    results.comparisons = {{.a = "a", .b = "b", .right = less}};
    say_more_accurate(results);
    return results.advice.words;
  };
  // The intervals of the two overlap: paired, records that are hard for both do not count.
  EXPECT_EQ(words({-0.05, -0.07, -0.03, 5}),
            " By right answers b is ahead, by 5.0 points (3.0 to 7.0): the loss also asks how sure a model is.");
  EXPECT_EQ(words({-0.05, -0.11, 0.01, 5}), "") << "the interval of the difference includes 0";
  EXPECT_EQ(words({0.05, 0.03, 0.07, 5}), "") << "it has fewer";
  EXPECT_EQ(words({-0.05, -0.07, -0.03, 5}, false), "") << "it is not ranked, so what it reached means nothing";
}

TEST(Advice, SaysHowFarTheQuestionIsFromWhatWasMeasured) {
  const std::vector<SchemeEvidence> one = {finalist("a", 1.9, {trains(1e-3, 40, 1.9)})};
  const std::string words = advice_for(one, {.width = 32, .asked_layers = 96, .asked_width = 4096}).words;
  EXPECT_NE(words.find("8 times the depth and 1.3e+02 times the width of what was measured"), std::string::npos)
      << words;
  EXPECT_NE(words.find("was not tested"), std::string::npos);
}

TEST(Advice, ShortRunsAloneGiveLowConfidenceAndNoEvidenceNoAdvice) {
  const std::vector<SchemeEvidence> map = {evidence("a", {trains(1e-3, 0, 1.9)}),
                                           evidence("b", {trains(1e-3, 0, 2.5)})};
  EXPECT_NE(advice_for(map).confidence.find("Confidence is low: there was no final comparison"), std::string::npos);
  EXPECT_TRUE(advice_for(map).words.starts_with("Undecided at 12 layers")) << advice_for(map).words;
  EXPECT_NE(advice_for(map).words.find("and no warmup."), std::string::npos);
  std::vector<SchemeEvidence> none = {evidence("a", {fails(1e-3, 0, 3)})};
  EXPECT_TRUE(advice_for(none).ranking.empty());
  EXPECT_NE(advice_for(none).words.find("none is ranked. Try smaller rates"), std::string::npos);
  const std::vector<SchemeEvidence> untrained = {evidence("a", {})};
  const Advice silent = advice_for(untrained);
  EXPECT_EQ(silent.words, "Nothing was trained, so there is no advice; the analyses at init stand by themselves.");
  EXPECT_EQ(silent.not_tested, std::vector<std::string>{"training"});
}

TEST(Advice, WhatStartsLateWasSeenToTrain) {
  SchemeEvidence late = evidence("a", {fails(1e-3, 0, 0)});
  late.training = Training::late;
  late.long_steps = 3000;
  const Advice advice = advice_for({late, evidence("b", {fails(1e-3, 0, 3)})});
  EXPECT_TRUE(
      advice.words.starts_with("Undecided at 12 layers: only runs of 3000 steps got below guessing level, those "
                               "of a, and they are no comparison. Try --steps 3000 with a larger budget"))
      << advice.words;
  EXPECT_TRUE(advice.ranking.empty());
}

TEST(Advice, SaysWhyThereWasNoFinal) {
  const std::vector<SchemeEvidence> map = {evidence("a", {trains(1e-3, 0, 1.9)})};
  const std::string why = "The budget of 40steps ended before it; a larger one pays for it.";
  EXPECT_TRUE(advice_for(map, {.why_no_final = why}).confidence.ends_with(" " + why));
}

TEST(Advice, WhatDivergesInItsFirstStepIsNoMatterOfRates) {
  std::vector<SchemeEvidence> all = {evidence("a", {fails(1e-3, 0, 3), fails(1e-4, 0, 3)})};
  EXPECT_NE(advice_for(all).words.find("Try smaller rates"), std::string::npos) << advice_for(all).words;
  all[0].cells[0].at_once = 3;
  EXPECT_NE(advice_for(all).words.find("Try smaller rates"), std::string::npos) << "one setting began";
  all[0].cells[1].at_once = 3;
  EXPECT_EQ(advice_for(all).words.find("rates"), std::string::npos) << advice_for(all).words;
  EXPECT_NE(judge_schemes(all)[0].words.find("in its first step, before any update"), std::string::npos);
}

TEST(Advice, NamesThoseThatItsOrderIsSilentAbout) {
  std::vector<SchemeEvidence> all = {finalist("a", 1.9, {trains(1e-3, 40, 1.9)}),
                                     finalist("b", 2.5, {trains(1e-3, 0, 2.5)}), evidence("c", {fails(1e-3, 0, 0)})};
  all[2].training = Training::unclear;
  EXPECT_NE(advice_for(all).words.find(" Not compared: c, at guessing level in every run so far."), std::string::npos)
      << advice_for(all).words;
  all.push_back(all[2]);
  all[3].title = "d";
  all[2].budget_to_tell = all[3].budget_to_tell = "--budget 7min";
  EXPECT_NE(advice_for(all).words.find("c, d, at guessing level in every run so far; --budget 7min would tell whether "
                                       "they train."),
            std::string::npos)
      << advice_for(all).words;
  all.resize(2);
  EXPECT_EQ(advice_for(all).words.find("Not compared"), std::string::npos);
}

TEST(Table, LossesOfShortRunsDoNotStandBesideThoseOfTheFinal) {
  Results results = new_results(ResultsKind::study);
  for (const char* scheme : {"a", "b"}) {
    results.verdicts.push_back({.scheme = scheme, .verdict = Judgement::stable});
    Tuned& tuned = results.tuned.emplace_back();
    tuned.scheme = scheme;
    tuned.loss = {2.833, 2.833, 2.833, 2};
    tuned.lr = 1e-3;
  }
  const auto count = [&] {
    const std::string table = study_table(results);
    std::size_t found = 0;
    for (std::size_t at = table.find("2.833  "); at != std::string::npos; at = table.find("2.833  ", at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count(), 4u) << "all of one length\n" << study_table(results);
  results.tuned[0].steps = 400;
  EXPECT_EQ(count(), 2u) << study_table(results);
}

TEST(Table, ARankCountsWhatLastsAndThePlaceNowWhatIsTold) {
  Results results = new_results(ResultsKind::study);
  for (const char* scheme : {"a", "b", "c", "d"}) {
    results.verdicts.push_back({.scheme = scheme, .verdict = Judgement::stable});
    results.advice.ranking.push_back(scheme);
  }
  const auto line_of = [&](const std::string& scheme) {
    std::istringstream lines(study_table(results));
    std::string rank, now, name;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      if (words >> rank >> now >> name && name == scheme) return rank + " " + now;
    }
    return std::string("none");
  };
  EXPECT_EQ(line_of("a"), "- -") << "short runs that chose the settings are no comparison";
  const auto pair = [](const char* a, const char* b, double mean, bool apart, bool lasting) {
    Comparison one{.a = a, .b = b, .apart = apart, .lasting = lasting};
    one.difference.mean = mean;
    return one;
  };
  results.comparisons = {pair("a", "b", -0.1, false, false), pair("a", "c", -0.3, true, true),
                         pair("c", "b", 0.2, true, false)};
  EXPECT_EQ(line_of("a"), "1-2 1-2");
  EXPECT_EQ(line_of("b"), "1-3 1-2");
  EXPECT_EQ(line_of("c"), "2-3 3");
  EXPECT_EQ(line_of("d"), "- -") << "it was not in the final";
}

}  // namespace
}  // namespace norma
