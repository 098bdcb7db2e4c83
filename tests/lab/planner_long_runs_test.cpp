// What a study says of schemes that do not train, or start late, on made-up ones whose truth is known.
#include <algorithm>
#include <set>

#include "lab/planner_world.h"

namespace norma {
namespace {

using test::Curve;
using test::diverging_above;
using test::falling;
using test::hopeless;
using test::kGuessing;
using test::kTokens;
using test::starting_after;
using test::World;

TEST(Planner, ASchemeThatOnlyStartsLateIsNeverSaidNotToTrain) {
  bool late = false;
  for (const double budget : {0.0, 3e2, 1e3, 3e3, 1e4, 3e4, 1e5, 1e6}) {
    World world({falling(1.0), starting_after(1000)}, 1);
    const StudyState& state = world.play(budget);
    const Training training = training_after(state, 1);
    EXPECT_NE(training, Training::stuck) << budget;
    EXPECT_NE(training, Training::diverges) << budget;
    late = late || training == Training::late || training == Training::trains;
  }
  EXPECT_TRUE(late) << "with enough budget it is seen to train";
}

TEST(Planner, GuessingAfterALongRunIsSaidNotToTrain) {
  World poor({falling(1.0, 20), hopeless()}, 1), rich({falling(1.0, 20), hopeless()}, 1), alone({hopeless()}, 1);
  EXPECT_EQ(training_after(poor.play(3e3), 1), Training::unclear);
  const StudyState& state = rich.play(1e5);
  EXPECT_EQ(training_after(state, 1), Training::stuck);
  EXPECT_EQ(training_after(state, 0), Training::trains);
  EXPECT_GE(rich.rounds(Stage::longest)[0]->steps, 3000);
  EXPECT_EQ(training_after(alone.play(1e5), 0), Training::stuck);
  EXPECT_GE(alone.rounds(Stage::race).back()->steps, 3000) << "nobody trains, so steps are all there is to try";
  EXPECT_TRUE(alone.rounds(Stage::final).empty()) << "nothing trains, so nothing is compared";
  World wild({diverging_above(1e-9, hopeless())}, 1);
  EXPECT_EQ(training_after(wild.play(1e5), 0), Training::diverges);
  EXPECT_TRUE(wild.rounds(Stage::race).empty());
}

// Two rates of 3,000 steps for each of three schemes are 18,000 steps; races up to that length would be 54,000 and
// more.
TEST(Planner, WhereNothingTrainsWaitingDoesNotUseUpTheLongRuns) {
  for (const double budget : {1.85e4, 2.5e4, 4e4, 6e4, 2e5}) {
    World world({hopeless(), hopeless(), hopeless()}, 1);
    const StudyState& state = world.play(budget);
    for (std::size_t scheme = 0; scheme < 3; ++scheme)
      EXPECT_EQ(training_after(state, scheme), Training::stuck) << budget << " scheme " << scheme;
  }
  World poor({hopeless(), hopeless(), hopeless()}, 1), late({starting_after(1000), starting_after(1500)}, 1);
  EXPECT_EQ(training_after(poor.play(1.5e4), 0), Training::unclear) << "one rate each is not enough to tell";
  const StudyState& state = late.play(2e4);
  for (const std::size_t scheme : {0u, 1u}) {
    EXPECT_NE(training_after(state, scheme), Training::stuck);
    EXPECT_NE(training_after(state, scheme), Training::unclear);
  }
}

TEST(Planner, LongRunsAreKeptForWhileCurvesFall) {
  World world({falling(1.0, 2000), hopeless()}, 1);
  EXPECT_EQ(training_after(world.play(3e4), 1), Training::stuck) << "the falling curve would take it all";
  EXPECT_FALSE(world.rounds(Stage::final).empty());
}

// As Post-LN on a text: at guessing level at once and for long, unless the rate is small and there is warmup.
TEST(Planner, ASchemeThatNeedsSmallRatesIsNeverSaidNotToTrain) {
  const Curve shy = [](double lr, std::int64_t steps) {
    return lr > 1.1e-3 || steps < 700 ? kGuessing : falling(1.5, 400, 1e-3)(lr, steps - 700);
  };
  bool trains = false;
  for (const double budget : {3e3, 1e4, 3e4, 1e5, 3e5, 1e6}) {
    World world({falling(1.0), shy}, 1);
    const Training training = training_after(world.play(budget), 1);
    EXPECT_NE(training, Training::stuck) << budget;
    trains = trains || training == Training::trains || training == Training::late;
  }
  EXPECT_TRUE(trains) << "with enough budget it is seen to train";
}

// First how frequent each token is, which takes some way at small rates, and only then the rest: as a stack without a
// residual on a text.
Curve on_its_way(double to_guessing, double to_more) {
  return [=](double lr, std::int64_t steps) {
    const double way = lr * static_cast<double>(steps);
    if (way < to_guessing) return kGuessing + 2 * (1 - way / to_guessing);
    return way < to_more ? kGuessing : falling(1.5)(lr, static_cast<std::int64_t>((way - to_more) / lr));
  };
}

TEST(Planner, RunsThatEndAboveGuessingLevelDoNotSayThatASchemeDoesNotTrain) {
  bool begins = false;
  for (const double budget : {3e3, 1e4, 3e4, 1e5, 3e5}) {
    World world({falling(1.0, 20), on_its_way(2, 6)}, 1), never({falling(1.0, 20), on_its_way(1e4, 1e5)}, 1);
    const Training training = training_after(world.play(budget), 1);
    EXPECT_NE(training, Training::stuck) << budget << ": 0.0003 has come nowhere in 3000 steps, 0.003 begins there";
    begins = begins || training == Training::late || training == Training::trains;
    const StudyState& state = never.play(budget);
    EXPECT_EQ(training_after(state, 1), Training::unclear) << budget;
    if (budget < 1e5) continue;
    EXPECT_EQ(rates_above_guessing_long(state, 1).size(), 4u);
    EXPECT_TRUE(missing_long_entries(state, 1).empty()) << "nor would a larger budget tell";
  }
  EXPECT_TRUE(begins);
}

// A rate of 0.003 is above guessing level after races of 400 steps, so 0.0003 would be there after ten times as many:
// the smallest rates were tried first, and of three long runs one told nothing.
TEST(Planner, LongRunsThatWouldTellNothingComeLast) {
  World world({falling(1.0, 20), on_its_way(1.5, 1e5)}, 1);
  const StudyState& state = world.play(1e5);
  EXPECT_EQ(training_after(state, 1), Training::stuck);
  std::set<double> tried;
  for (const Round* round : world.rounds(Stage::longest)) {
    for (const RoundEntry& entry : round->entries) tried.insert(entry.lr);
  }
  EXPECT_EQ(tried, (std::set<double>{1e-3, 3e-3}));
  // Above guessing level because they are too large: that says nothing of small rates, which come first.
  const Curve wild = [](double lr, std::int64_t) { return lr > 2e-3 ? kGuessing + 100 * lr : kGuessing; };
  World shaken({falling(1.0, 20), wild}, 1);
  shaken.play(1e5);
  ASSERT_FALSE(shaken.rounds(Stage::longest).empty());
  for (const RoundEntry& entry : shaken.rounds(Stage::longest)[0]->entries) EXPECT_LE(entry.lr, 1e-3);
}

// What is said not to train has been trained ten times as long as the others were compared, and a race in which it
// waited is not that.
TEST(Planner, NotToTrainIsSaidAfterTenTimesTheTrainingOfTheOthers) {
  int said = 0;
  for (const double half_life : {20.0, 400.0, 4000.0}) {
    for (const double budget : {1e4, 3e4, 1e5, 3e5, 1e6, 3e6}) {
      World world({falling(1.0, half_life), hopeless()}, 1);
      const StudyState& state = world.play(budget);
      ASSERT_FALSE(world.rounds(Stage::final).empty());
      if (training_after(state, 1) != Training::stuck) continue;
      ++said;
      std::int64_t longest = 0;
      for (const PlayedRound& played : state.played) {
        for (const RoundRun& run : played.runs) longest = std::max(longest, run.scheme == 1 ? played.round.steps : 0);
      }
      EXPECT_GE(longest, 10 * world.rounds(Stage::final)[0]->steps) << half_life << ", " << budget;
    }
  }
  EXPECT_GE(said, 12) << "nor is it kept back where there is budget for it";
}

TEST(Planner, TheBudgetThatWouldTellTells) {
  for (const double half_life : {20.0, 400.0, 4000.0}) {
    for (const double budget : {1e3, 3e3, 1e4, 2e4}) {
      World world({falling(1.0, half_life), falling(1.3, half_life), hopeless(), hopeless()}, 1);
      const StudyState& state = world.play(budget);
      if (training_after(state, 2) != Training::unclear) continue;
      double spent = 0;
      for (const PlayedRound& played : state.played) spent += played.round.member_steps();
      World again({falling(1.0, half_life), falling(1.3, half_life), hopeless(), hopeless()}, 1);
      const StudyState& told = again.play(spent + tokens_to_tell(state) / kTokens);
      for (const std::size_t scheme : {2u, 3u})
        EXPECT_EQ(training_after(told, scheme), Training::stuck) << half_life << ", " << budget;
      EXPECT_FALSE(again.rounds(Stage::final).empty());
    }
  }
}

}  // namespace
}  // namespace norma
