// Sentences say no more than the intervals allow.
#include "report/page/words.h"

#include <gtest/gtest.h>

#include "report/page/html.h"

#include "results/made_up.h"

namespace norma {
namespace {

Results words_study() {
  Results results = new_results(ResultsKind::study);
  for (const auto& [name, title] : {std::pair("a", "A"), std::pair("b", "B"), std::pair("c", "C")}) {
    SchemeSummary& scheme = results.schemes.emplace_back();
    scheme.name = name;
    scheme.title = title;
  }
  results.task = TaskFacts{.name = "t", .description = "", .optimum = 1, .unigram = 3};
  return results;
}

Series law(const char* scheme, double value, double low, double high) {
  return {.scheme = scheme, .x = {6, 12}, .y = {{1, 1, 1, 8}, {2, 2, 2, 8}}, .exponent = Exponent{value, low, high}};
}

TEST(Words, TheFirstSentenceEndsBeforeACapital) {
  EXPECT_EQ(first_sentence("Use it at a rate of 0.03. Measured here. And there."),
            std::pair(std::string("Use it at a rate of 0.03."), std::string("Measured here. And there.")));
  EXPECT_EQ(first_sentence("At a rate of approx. 3 use it").second, "");
}

TEST(Words, AreTypeset) {
  EXPECT_EQ(typeset("Pre-LN shrinks as L^-1.02 (-1.04 to -1.00); x < 1."),
            "<span class=\"whole\">Pre-LN</span> shrinks as L<sup>−1.02</sup> (−1.04 to −1.00); x &lt; 1.");
  EXPECT_EQ(typeset("held-out x^2^<b> a^b 3-4 é"), "held-out x<sup>2</sup>^&lt;b&gt; a^b 3-4 é");
  EXPECT_EQ(preformatted("[model]\nwidth = 3 < 4\n", "C"),
            "<pre tabindex=\"0\" role=\"group\" aria-label=\"C\">[model]\nwidth = 3 &lt; 4\n</pre>\n");
}

TEST(Words, LawsAreSortedByWhatTheirIntervalsTell) {
  Results results = words_study();
  results.analyses = {{.name = "gradient",
                       .title = "x",
                       .about = "",
                       .source = "",
                       .series = {law("a", 0.5, 0.4, 0.6), law("b", -1, -1.1, -0.9), law("c", 0.1, -0.4, 0.6)}}};
  EXPECT_EQ(
      law_sentence(results.analyses[0], Cast(results)),
      "Gradient of the last layer: with more layers it grows for A (exponent 0.50); falls for B (exponent −1.00); is "
      "not settled for C.");
}

TEST(Words, DepthIsRankedOnlyWhereIntervalsAreApart) {
  Results results = words_study();
  results.depth_use = {{.scheme = "a", .layers = 12, .effective_depth = {9, 8, 10, 3}},
                       {.scheme = "b", .layers = 12, .effective_depth = {3, 2, 4, 3}}};
  EXPECT_EQ(depth_sentence(results, Cast(results)),
            "A uses 9.0 [8.0, 10.0] of 12 layers, B uses 3.0 [2.0, 4.0] of 12 layers.");
  results.depth_use[1].effective_depth = {3, 1, 8.5, 3};
  EXPECT_EQ(depth_sentence(results, Cast(results)),
            "A uses 9.0 [8.0, 10.0] of 12 layers, B uses 3.0 [1.0, 8.5] of 12 layers; their intervals overlap.");
}

TEST(Words, DivergenceIsCountedAndGuessingIsNotTraining) {
  Results results = words_study();
  const auto map = [](const char* scheme, double loss, double lost) {
    return StabilityMap{.scheme = scheme,
                        .layers = 2,
                        .rest = "",
                        .y_name = "warmup",
                        .lr = {1, 2},
                        .y = {0},
                        .loss = {{{loss, loss, loss, 2}, {loss, loss, loss, lost < 1 ? 2 : 0}}},
                        .diverged = {{0, lost}}};
  };
  results.maps = {map("a", 2, 0), map("b", 2, 1), map("c", 3.1, 0)};
  EXPECT_EQ(
      stability_sentence(results, Cast(results)),
      "In the short runs, seeds diverged with B (1 of 2 settings), and with no other scheme. Not diverging is not "
      "yet training: C stayed at guessing level throughout.");
  results.extra_rates = {{.scheme = "b", .lr = {2}}};
  EXPECT_TRUE(stability_sentence(results, Cast(results))
                  .starts_with("In the short runs, those at rates beyond the "
                               "shared grid included, seeds diverged with B"))
      << "verdicts count the shared grid alone: " << stability_sentence(results, Cast(results));
  results.maps = {map("a", 2, 0)};
  results.extra_rates.clear();
  EXPECT_EQ(stability_sentence(results, Cast(results)), "No seed diverged in the short runs.");
  results.kind = ResultsKind::sweep;
  EXPECT_EQ(stability_sentence(results, Cast(results)), "No seed diverged.");
}

TEST(Words, TheLeaderIsComparedPairByPair) {
  Results results = words_study();
  results.advice.ranking = {"a", "b", "c"};
  results.comparisons = {{.a = "a", .b = "b", .apart = true}, {.a = "c", .b = "a"}, {.a = "b", .b = "c"}};
  EXPECT_EQ(comparison_sentence(results, Cast(results)),
            "The final comparison separates A from B, but not from C. Of 3 pairs it separates 1 (paired over seeds and "
            "held-out data, corrected for their number). None of these differences can be expected to last through "
            "ten times the training: the schemes behind may catch up.");
  results.comparisons[0].lasting = true;
  EXPECT_TRUE(comparison_sentence(results, Cast(results))
                  .ends_with("At the pace of the last races the schemes behind would not catch up within ten times "
                             "the training."));
  results.comparisons = {{.a = "c", .b = "a"}};
  EXPECT_EQ(comparison_sentence(results, Cast(results)),
            "The final comparison does not separate A from C (paired over seeds and held-out data).");
  results.comparisons = {{.a = "c", .b = "a", .apart = true}};
  EXPECT_EQ(comparison_sentence(results, Cast(results)),
            "The final comparison separates A from C (paired over seeds and held-out data). The difference cannot be "
            "expected to last through ten times the training: the scheme behind may catch up.");
  results.comparisons[0].lasting = true;
  EXPECT_TRUE(comparison_sentence(results, Cast(results))
                  .ends_with("At the pace of the last races the scheme behind would not catch up within ten times the "
                             "training."));
}

TEST(Words, WithoutTwoSchemesInAFinalNothingWasCompared) {
  Results results = words_study();
  results.runs.resize(1);
  EXPECT_EQ(comparison_sentence(results, Cast(results)), "No scheme came into a final, so nothing was compared.");
  results.advice.ranking = {"a", "b"};
  EXPECT_EQ(comparison_sentence(results, Cast(results)),
            "There was no final comparison: the order is that of short runs, and may change.");
  results.course = Course{.budget = "3min", .rounds = {}};
  results.course->rounds.resize(1);
  results.course->rounds[0].stage = Stage::final;
  EXPECT_EQ(comparison_sentence(results, Cast(results)), "No two schemes were in the final, so nothing was compared.");
}

TEST(Words, WhatStartsLateIsSaidWithWhatItReaches) {
  Results results = words_study();
  results.verdicts = {{.scheme = "a",
                       .rank = 1,
                       .verdict = Judgement::starts_late,
                       .words = "A: is at guessing level after 100 steps, but reaches 2.836 after 3000 (of 16 short "
                                "runs 0 diverged and 16 ended at guessing level)."}};
  EXPECT_EQ(scheme_sentence(results, "a"), "Is at guessing level after 100 steps, but reaches 2.836 after 3000.");
}

TEST(Words, OneSentenceForEachScheme) {
  Results results = words_study();
  Tuned tuned;
  tuned.scheme = "a";
  tuned.lr = 0.03;
  tuned.warmup = 30;
  tuned.loss = {1.9553, 1.9502, 1.9604, 3};
  results.tuned = {tuned};
  results.verdicts = {{"a", 1, Judgement::stable, ""},
                      {"b", 2, Judgement::unclear, ""},
                      {"c", 0, Judgement::untested, "It sees the future. So."}};
  EXPECT_EQ(scheme_sentence(results, "a"), "Loss 1.955 [1.950, 1.960] at a peak rate of 0.03 with 30 steps of warmup.");
  results.tuned[0].accuracy = Estimate{0.941, 0.92, 0.962, 3};
  EXPECT_EQ(
      scheme_sentence(results, "a"),
      "94.1\u00a0% (92.0 to 96.2) right, loss 1.955 [1.950, 1.960] at a peak rate of 0.03 with 30 steps of warmup.");
  results.tuned[0].accuracy = Estimate{0.941, 0.941, 0.941, 2};
  EXPECT_TRUE(scheme_sentence(results, "a").starts_with("94.1\u00a0% right, loss")) << "no interval of no width";
  results.tuned[0].accuracy.reset();
  results.tuned[0].loss = {0.12, -0.36, 0.6, 2};
  EXPECT_TRUE(scheme_sentence(results, "a").starts_with("Loss 0.120 [0.000, 0.600] at")) << "no loss is below 0";
  EXPECT_EQ(scheme_sentence(results, "b"),
            "Not enough training to tell: at guessing level after the runs that the budget paid for.");
  EXPECT_EQ(scheme_sentence(results, "c"), "It sees the future.");
  results.verdicts[2].words = "C: leaks: a later token changes an earlier logit; it is not ranked.";
  EXPECT_EQ(scheme_sentence(results, "c"), "Leaks: a later token changes an earlier logit; it is not ranked.")
      << "the page has its name before it";
}

TEST(Words, SettingsThatTrainAreCountedAsVerdictsCountThem) {
  Results results = words_study();
  Tuned tuned;
  tuned.scheme = "a";
  tuned.loss = {1.9, 1.8, 2.0, 3};
  results.tuned = {tuned};
  results.verdicts = {{"a", 1, Judgement::stable, ""}};
  const auto run = [](double lr, Outcome outcome) {
    RunOutcome one;
    one.scheme = "a";
    one.lr = lr;
    one.outcome = outcome;
    one.stage = Stage::map;
    return one;
  };
  results.runs = {run(0.1, Outcome::stable), run(0.1, Outcome::did_not_learn), run(0.2, Outcome::stable),
                  run(0.4, Outcome::stable)};
  results.extra_rates = {{.scheme = "a", .lr = {0.4}}};
  EXPECT_TRUE(scheme_sentence(results, "a")
                  .ends_with("; trains in 1 of the 2 settings that all schemes share in the short runs."))
      << "not in those at which a seed stayed at guessing level, nor at rates of one scheme alone: "
      << scheme_sentence(results, "a");
  results.extra_rates.clear();
  EXPECT_TRUE(scheme_sentence(results, "a").ends_with("; trains in 2 of the 3 settings tried in the short runs."))
      << scheme_sentence(results, "a");
}

TEST(Words, RightAnswersThatRankOtherwiseAreSaid) {
  Results results = words_study();
  results.tuned.resize(2);
  results.tuned[0].scheme = "a", results.tuned[1].scheme = "b";
  results.tuned[0].loss = {0.1, 0.09, 0.11, 5}, results.tuned[1].loss = {0.2, 0.19, 0.21, 5};
  EXPECT_EQ(accuracy_sentence(results, Cast(results)), "") << "nobody looked at answers";
  results.tuned[0].accuracy = Estimate{0.95, 0.94, 0.96, 5};
  results.tuned[1].accuracy = Estimate{0.98, 0.97, 0.99, 5};
  results.advice.ranking = {};
  EXPECT_EQ(accuracy_sentence(results, Cast(results)), "") << "where nothing is ranked there is no other order";
  results.advice.ranking = {"a", "b"};
  EXPECT_EQ(accuracy_sentence(results, Cast(results)),
            "By right answers the order is different: B has 98.0\u00a0% (97.0 to 99.0) right, A 95.0\u00a0% (94.0 to "
            "96.0) right. The loss, which ranks here, also counts how sure the answers are.");
  results.tuned[1].accuracy->low = 0.955;
  EXPECT_NE(accuracy_sentence(results, Cast(results)).find("; their intervals overlap."), std::string::npos);
  results.comparisons = {{.a = "a", .b = "b", .right = Estimate{-0.03, -0.05, -0.01, 5}}};
  EXPECT_NE(accuracy_sentence(results, Cast(results)).find("right; the paired difference is 3.0 points (1.0 to 5.0)."),
            std::string::npos)
      << accuracy_sentence(results, Cast(results));
  results.comparisons[0].right->high = 0.01;
  EXPECT_NE(accuracy_sentence(results, Cast(results)).find("; the interval of their paired difference includes 0."),
            std::string::npos);
  results.tuned[1].accuracy->mean = 0.94;
  EXPECT_EQ(accuracy_sentence(results, Cast(results)), "");
}

TEST(Words, DatesAndDurations) {
  EXPECT_EQ(date_text("2026-11-16T14:10:58Z"), "16 November 2026");
  EXPECT_EQ(date_text("soon"), "soon");
  EXPECT_EQ(duration_words(35.4), "35 s");
  EXPECT_EQ(duration_words(181), "3 min");
}

}  // namespace
}  // namespace norma
