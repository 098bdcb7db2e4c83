// From made-up evidence to advice.
#include <gtest/gtest.h>

#include "lab/study/describe.h"
#include "lab/study/parts.h"
#include "lab/study/verdict.h"
#include "lab/verdict_check.h"
#include "norma/lab/study.h"

namespace norma {
namespace {

using test::evidence;
using test::fails;
using test::finalist;
using test::trains;

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
  const int seeds = twins[0].final->seeds;
  EXPECT_NE(advice_for(twins, {.most_seeds = seeds + 1}).confidence.find("a larger budget may tell"),
            std::string::npos);
  const std::string full = advice_for(twins, {.most_seeds = seeds}).confidence;
  EXPECT_EQ(full.find("may tell"), std::string::npos) << full;
  EXPECT_NE(full.find("as many seeds as a study takes"), std::string::npos) << full;
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

}  // namespace
}  // namespace norma
