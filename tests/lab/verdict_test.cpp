// From made-up evidence to verdicts: what trained, what is an error, and the words of laws and ranks.
#include <gtest/gtest.h>

#include "lab/study/describe.h"
#include "lab/study/parts.h"
#include "lab/study/verdict.h"
#include "lab/verdict_check.h"
#include "norma/lab/study.h"

namespace norma {
namespace {

using test::around;
using test::ended;
using test::evidence;
using test::fails;
using test::trains;
using test::verdict_of;

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

}  // namespace
}  // namespace norma
