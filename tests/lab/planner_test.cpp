// The plan of a study on made-up schemes whose truth is known: whole studies in microseconds.
#include "lab/study/planner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <set>

namespace norma {
namespace {

constexpr double kGuessing = 3.0;
constexpr std::int64_t kMapSteps = 100;
constexpr double kTokens = 256;

// The mean loss after so many steps at a rate; not finite: diverges.
using Curve = std::function<double(double lr, std::int64_t steps)>;

Curve falling(double end, double half_life = 100, double best = 1e-2) {
  return [=](double lr, std::int64_t steps) {
    const double detour = std::pow(std::log(lr / best), 2) * 0.05;
    return end + detour + (kGuessing - end) * std::exp2(-static_cast<double>(steps) / half_life);
  };
}
Curve starting_after(std::int64_t start) {
  return [=](double lr, std::int64_t steps) { return steps < start ? kGuessing : falling(1.5)(lr, steps - start); };
}
Curve hopeless() {
  return [](double, std::int64_t) { return kGuessing; };
}
Curve diverging_above(double largest, const Curve& below) {
  return [=](double lr, std::int64_t steps) {
    return lr > largest ? std::numeric_limits<double>::infinity() : below(lr, steps);
  };
}

class World {
 public:
  World(std::vector<Curve> schemes, unsigned seed, double seed_noise = 0.01, double batch_noise = 0.01)
      : schemes_(std::move(schemes)), random_(seed), seed_noise_(seed_noise), batch_noise_(batch_noise) {
    state_.map_steps = kMapSteps;
    state_.tuning_seeds = {1, 2};
    state_.tokens_per_step = kTokens;
    state_.guessing = kGuessing;
    for (std::size_t s = 0; s < schemes_.size(); ++s) {
      batches_.emplace_back();
      for (int b = 0; b < 16; ++b) batches_.back().push_back(batch_noise_ * normal());
      SchemeEvidence evidence{.scheme = std::to_string(s), .title = std::to_string(s), .layers = 12};
      for (const double lr : {1e-3, 3e-3, 1e-2, 3e-2}) {
        for (const std::int64_t warmup : {0, 30}) evidence.cells.push_back(cell(s, lr, warmup));
      }
      state_.schemes.push_back(std::move(evidence));
    }
    state_.finals.resize(schemes_.size());
  }

  void keep_to_grid() { state_.beyond_grid = false; }

  // A whole study with so many steps of all runs after the map.
  const StudyState& play(double budget_steps) {
    double left = budget_steps * kTokens;
    while (const std::optional<Round> round = next_round(state_, left)) {
      EXPECT_LE(round->member_steps() * kTokens, left) << "a round that is not paid for";
      left -= round->member_steps() * kTokens;
      play(*round);
      if (state_.played.size() > 60) {
        ADD_FAILURE() << "no end of rounds";
        break;
      }
    }
    return state_;
  }

  std::vector<const Round*> rounds(Stage stage) const {
    std::vector<const Round*> all;
    for (const PlayedRound& played : state_.played) {
      if (played.round.stage == stage) all.push_back(&played.round);
    }
    return all;
  }

 private:
  double normal() { return normal_(random_); }

  RoundRun run(std::size_t scheme, double lr, std::int64_t warmup, std::int64_t seed, std::int64_t steps) {
    const double mean = schemes_[scheme](lr, steps);
    const double loss = mean >= kGuessing || !std::isfinite(mean) ? mean : mean + seed_noise_ * normal();
    return {.scheme = scheme,
            .lr = lr,
            .warmup = warmup,
            .seed = seed,
            .diverged = !std::isfinite(loss),
            .learned = loss < kGuessing - 0.02,
            .guesses = std::abs(loss - kGuessing) <= 0.02,
            .loss = loss};
  }

  TrainedCell cell(std::size_t scheme, double lr, std::int64_t warmup) {
    TrainedCell cell{.lr = lr, .warmup = warmup, .loss = {}};
    std::vector<double> losses;
    for (const std::int64_t seed : state_.tuning_seeds) {
      const RoundRun one = run(scheme, lr, warmup, seed, kMapSteps);
      ++cell.runs;
      cell.diverged += one.diverged ? 1 : 0;
      cell.not_learned += !one.diverged && !one.learned ? 1 : 0;
      if (!one.diverged) losses.push_back(one.loss);
    }
    if (!losses.empty()) cell.loss = estimate_of(losses);
    return cell;
  }

  void play(const Round& round) {
    PlayedRound played{.round = round};
    for (const RoundEntry& entry : round.entries) {
      for (const std::int64_t seed : entry.seeds) {
        played.runs.push_back(run(entry.scheme, entry.lr, entry.warmup, seed, round.steps));
        if (round.stage != Stage::final) continue;
        std::vector<double> row;
        for (const double batch : batches_[entry.scheme])
          row.push_back(played.runs.back().loss + batch + 0.002 * normal());
        state_.finals[entry.scheme].push_back(row);
      }
    }
    state_.played.push_back(std::move(played));
  }

  std::vector<Curve> schemes_;
  std::mt19937 random_;
  double seed_noise_, batch_noise_;
  std::normal_distribution<double> normal_;
  std::vector<std::vector<double>> batches_;  // what each does to a scheme
  StudyState state_;
};

TEST(Planner, TheFinalIsPaidForWhateverTheBudget) {
  for (const double budget : {3e3, 1e4, 1e5, 1e6}) {
    World world({falling(1.0), falling(1.5), falling(1.2, 1000)}, 1);
    world.play(budget);
    ASSERT_FALSE(world.rounds(Stage::final).empty()) << budget;
    EXPECT_GE(world.rounds(Stage::final)[0]->entries[0].seeds.size(), 5u) << budget;
    for (const Round* round : world.rounds(Stage::race)) EXPECT_GT(round->steps, kMapSteps);
  }
  World poor({falling(1.0)}, 1);
  EXPECT_TRUE(poor.play(0).played.empty());
}

TEST(Planner, StepsGoToCurvesThatFall) {
  World flat({falling(1.0, 10), falling(1.5, 10)}, 1, 0.002), slow({falling(1.0, 10), falling(1.5, 800)}, 1, 0.002);
  flat.play(1e6);
  slow.play(1e6);
  EXPECT_EQ(flat.rounds(Stage::race).size(), 1u) << "one more length shows that nothing falls any more";
  EXPECT_GE(slow.rounds(Stage::race).back()->steps, 3200);
  EXPECT_LT(slow.rounds(Stage::race).back()->steps, 25'600) << "until it has flattened";
  EXPECT_NE(slow.rounds(Stage::race).back()->why.find("still falling: 1"), std::string::npos);
}

TEST(Planner, SettingsAreHalvedAndTheFinalHasFreshSeeds) {
  World world({falling(1.0, 400), falling(1.5, 400)}, 1);
  world.play(1e6);
  const std::vector<const Round*> races = world.rounds(Stage::race);
  EXPECT_EQ(races[0]->entries.size(), 8u);
  EXPECT_EQ(races[1]->entries.size(), 4u);
  const Round& final = *world.rounds(Stage::final)[0];
  EXPECT_EQ(final.entries.size(), 2u);
  EXPECT_EQ(final.entries[0].seeds, (std::vector<std::int64_t>{3, 4, 5, 6, 7, 8, 9})) << "what pays for two schemes";
  EXPECT_NEAR(final.entries[0].lr, 1e-2, 1e-9);
}

TEST(Planner, FewerSettingsRaceWhereMoreCouldNotRunTwiceAsLong) {
  World rich({falling(1.0, 400), falling(1.5, 400)}, 1), poor({falling(1.0, 400), falling(1.5, 400)}, 1);
  rich.play(1e6);
  poor.play(5500);  // for 8 runs of each scheme and 7 of the final 183 steps; for 4 and 7 of them 250
  EXPECT_EQ(rich.rounds(Stage::race)[0]->entries.size(), 8u);
  ASSERT_FALSE(poor.rounds(Stage::race).empty());
  EXPECT_EQ(poor.rounds(Stage::race)[0]->entries.size(), 4u);
  EXPECT_EQ(poor.rounds(Stage::race)[0]->steps, 2 * kMapSteps);
  EXPECT_FALSE(poor.rounds(Stage::final).empty());
}

TEST(Planner, SeedsGoToTies) {
  World world({falling(1.0, 20), falling(1.008, 20), falling(2.0, 20)}, 3);
  const StudyState& state = world.play(1e5);
  const std::size_t at_first = world.rounds(Stage::final)[0]->entries[0].seeds.size();
  EXPECT_GT(state.finals[0].size(), at_first);
  EXPECT_EQ(state.finals[0].size(), state.finals[1].size());
  EXPECT_EQ(state.finals[2].size(), at_first) << "nobody doubts that it is worse";
}

// Its first final tells 0 apart from 1 and 2; both of these get more seeds, since they are tied.
TEST(Planner, SeedsForOthersTakeNothingFromWhatWasTold) {
  StudyState state;
  state.schemes.resize(3);
  state.finals.resize(3);
  const auto look = [&](const std::vector<std::size_t>& schemes, int seeds) {
    Round round{.stage = Stage::final, .steps = 100};
    for (const std::size_t scheme : schemes) {
      RoundEntry entry{.scheme = scheme};
      for (int i = 0; i < seeds; ++i) {
        const auto seed = static_cast<int>(state.finals[scheme].size());
        const double noise = scheme == 0 ? 0 : scheme == 1 ? (seed % 2 == 0 ? 1 : -1) : (seed / 2 % 2 == 0 ? 1 : -1);
        state.finals[scheme].push_back({scheme == 0 ? 0 : 1.52 + noise});
        entry.seeds.push_back(seed);
      }
      round.entries.push_back(entry);
    }
    state.played.push_back({.round = round, .runs = {}});
  };
  const auto told = [&] {
    std::vector<bool> apart;
    for (const PairedDifference& pair : final_pairs(state)) {
      apart.push_back(pair.apart);
      EXPECT_EQ(pair.apart, pair.difference.low > 0 || pair.difference.high < 0);
    }
    return apart;
  };
  look({0, 1, 2}, 8);  // each has p = 0.005 against 0
  EXPECT_EQ(told(), (std::vector<bool>{true, true, false}));
  look({1, 2}, 4);
  look({1, 2}, 4);
  EXPECT_EQ(told(), (std::vector<bool>{true, true, false})) << "nothing new is known of 0";
  for (std::size_t seed = 0; seed < 40; ++seed) {  // a first impression that did not last
    for (const std::size_t scheme : {std::size_t{0}, std::size_t{1}})
      state.finals[scheme].push_back({seed % 2 ? 1.5 : 0.0});
  }
  EXPECT_EQ(told()[0], false) << "later seeds deny it";
}

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

TEST(Planner, OfTiedSettingsTheOneWithMarginIsTaken) {
  // All but equal up to 1e-2, and nothing trains above.
  const Curve even = diverging_above(
      2e-2, [](double lr, std::int64_t steps) { return falling(1.0, 20, lr)(lr, steps) + (lr < 1e-2 ? 0.01 : 0.0); });
  World world({even}, 1, 0.0001);
  world.play(1e5);
  EXPECT_LT(world.rounds(Stage::final)[0]->entries[0].lr, 5e-3) << "1e-2 stands before a cliff";
}

// Longer runs like smaller rates: the best one falls with the root of the length.
Curve shifting(double end) {
  return [=](double lr, std::int64_t steps) {
    const double best = 0.1 * std::sqrt(100 / static_cast<double>(steps));
    const double detour = 0.15 * std::pow(std::log(lr / best), 2);
    return std::min(kGuessing, end + detour + (2.9 - end) * std::exp2(-static_cast<double>(steps) / 400));
  };
}

TEST(Planner, RatesFollowTheLengthOfTheRuns) {
  World world({shifting(1.0), falling(1.2, 400, 3e-3)}, 1, 0.002);
  world.play(4e5);
  const Round& final = *world.rounds(Stage::final)[0];
  const double best = 0.1 * std::sqrt(100 / static_cast<double>(final.steps));
  ASSERT_EQ(final.entries.size(), 2u);
  EXPECT_GE(final.steps, 800);
  EXPECT_NEAR(std::log(final.entries[0].lr / best), 0, std::log(2.0)) << final.entries[0].lr << " of " << best;
}

TEST(Planner, ABestAtTheSmallestRateIsLookedBeyond) {
  // At any length but the map's the best is far below the grid.
  const Curve low = [](double lr, std::int64_t steps) {
    return falling(1.0, 50, steps > 150 ? 1e-4 : 1e-2)(lr, steps);
  };
  World world({low, falling(1.5, 50)}, 1, 0.002);
  world.play(2e5);
  EXPECT_LT(world.rounds(Stage::final)[0]->entries[0].lr, 4e-4);
  World kept({low, falling(1.5, 50)}, 1, 0.002);
  kept.keep_to_grid();
  kept.play(2e5);
  EXPECT_GE(kept.rounds(Stage::final)[0]->entries[0].lr, 1e-3) << "no rate beyond those asked for";
}

TEST(Planner, WhatDivergesWhenRunsGetLongerGoesOnWithSmallerRates) {
  const Curve fragile = [](double lr, std::int64_t steps) {
    return lr * static_cast<double>(steps) > 1.5 ? std::numeric_limits<double>::infinity()
                                                 : falling(1.0, 200, 1.2e-2)(lr, steps);
  };
  World world({fragile, falling(1.5, 200)}, 1, 0.002);
  world.play(2e5);
  const Round& final = *world.rounds(Stage::final)[0];
  ASSERT_EQ(final.entries.size(), 2u) << "it trains, so it is compared";
  EXPECT_LE(final.entries[0].lr * static_cast<double>(final.steps), 1.5);
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

TEST(Planner, LongerRunsWarmUpLonger) {
  World world({falling(1.0, 400)}, 1);
  const StudyState& state = world.play(3e5);
  EXPECT_EQ(warmup_for(state, 0, 0, 3000), 0);
  EXPECT_EQ(warmup_for(state, 0, 30, 200), 30);
  EXPECT_EQ(warmup_for(state, 0, 30, 3000), 300);
}

// A quick starter that is overtaken: whatever the budget, its lead is never said to last, and in the end the other's
// is.
TEST(Planner, ALeadThatLongerTrainingTurnsAroundIsNotClaimed) {
  bool turned = false, led = false;
  for (const double budget : {2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6}) {
    World world({falling(2.0, 60), falling(1.5, 500)}, 1, 0.005, 0.005);
    const StudyState& state = world.play(budget);
    for (const PairedDifference& pair : final_pairs(state)) {
      ASSERT_TRUE(pair.a == 0 && pair.b == 1);
      led = led || (pair.apart && pair.difference.mean < 0);
      EXPECT_FALSE(pair.difference.mean < 0 && is_lasting(state, pair)) << budget;
      turned = turned || (pair.difference.mean > 0 && is_lasting(state, pair));
    }
  }
  EXPECT_TRUE(led) << "short runs do tell them apart";
  EXPECT_TRUE(turned);
}

// The whole course, with its choices, repeated looks and races, on schemes that are the same.
TEST(Planner, EqualSchemesAreToldApartNoMoreOftenThanTheLevelSays) {
  constexpr int kStudies = 600;
  int apart = 0;
  for (unsigned study = 0; study < kStudies; ++study) {
    World world({falling(1.0, 30), falling(1.0, 30), falling(1.0, 30)}, study, 0.02, 0.02);
    for (const PairedDifference& pair : final_pairs(world.play(2e4))) {
      if (!pair.apart) continue;
      ++apart;
      break;
    }
  }
  EXPECT_LE(apart, 0.05 * kStudies + 4 * std::sqrt(kStudies * 0.05 * 0.95));
}

// Eight schemes of which none has flattened when the budget ends: it must leave seeds enough to tell them apart.
TEST(Planner, SchemesThatDifferByFewDeviationsAreToldApartInOneStudy) {
  int apart = 0;
  constexpr int kStudies = 100;
  for (unsigned study = 0; study < kStudies; ++study) {
    std::vector<Curve> schemes;
    for (const double end : {1.50, 1.50, 1.50, 1.50, 1.51, 1.60, 1.65, 1.85}) schemes.push_back(falling(end, 400));
    World world(std::move(schemes), study, 0.04);
    for (const PairedDifference& pair : final_pairs(world.play(1e5))) {
      if (pair.a < 5 && pair.b == 7) apart += pair.apart ? 1 : 0;  // nine deviations of one seed
    }
  }
  EXPECT_GT(apart, 0.9 * 5 * kStudies);
}

TEST(Planner, TheSameStateGivesTheSameRounds) {
  World one({falling(1.0), starting_after(700), falling(1.1, 500)}, 5),
      two({falling(1.0), starting_after(700), falling(1.1, 500)}, 5);
  const StudyState &a = one.play(2e5), &b = two.play(2e5);
  ASSERT_EQ(a.played.size(), b.played.size());
  for (std::size_t i = 0; i < a.played.size(); ++i) {
    EXPECT_EQ(a.played[i].round.steps, b.played[i].round.steps);
    EXPECT_EQ(a.played[i].round.why, b.played[i].round.why);
    EXPECT_EQ(a.played[i].round.runs(), b.played[i].round.runs());
  }
}

}  // namespace
}  // namespace norma
