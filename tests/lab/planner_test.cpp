// The plan of a study on made-up schemes whose truth is known.
#include "lab/study/planner.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "lab/planner_world.h"

namespace norma {
namespace {

using test::Curve;
using test::diverging_above;
using test::falling;
using test::kGuessing;
using test::kMapSteps;
using test::starting_after;
using test::World;

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
