// Levels, and their division among threads: nothing runs before what it needs, and every tile runs once.
#include "device/cpu/programme.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "device/step_plan.h"

namespace norma {
namespace {

struct Bytes {
  std::int64_t begin, end;
  bool overlaps(const Bytes& other) const { return begin < other.end && other.begin < end; }
};

struct Touches {
  std::vector<Bytes> reads, writes;
};

Touches touches_of(const Plan& plan, const Step& step) {
  Touches touches;
  const Node& node = plan.nodes()[static_cast<std::size_t>(step.node)];
  std::vector<int> ids = node.inputs;
  ids.insert(ids.end(), node.outputs.begin(), node.outputs.end());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (step.offsets[i] < 0) continue;
    const std::int64_t bytes = plan.values()[static_cast<std::size_t>(ids[i])].type.bytes();
    (i < node.inputs.size() ? touches.reads : touches.writes).push_back({step.offsets[i], step.offsets[i] + bytes});
  }
  if (step.kernel->needs.scratch_bytes > 0)
    touches.writes.push_back({step.scratch, step.scratch + step.kernel->needs.scratch_bytes});
  return touches;
}

bool overlap(const std::vector<Bytes>& some, const std::vector<Bytes>& others) {
  return std::any_of(some.begin(), some.end(), [&](const Bytes& one) {
    return std::any_of(others.begin(), others.end(), [&](const Bytes& other) { return one.overlaps(other); });
  });
}

// A first phase that prepares one input.
bool prepares(const Step& step) { return phases_of(step).size() > 1 && phases_of(step)[0].reads_only >= 0; }

Touches touches_of_preparing(const Plan& plan, const Step& step) {
  const auto input = static_cast<std::size_t>(phases_of(step)[0].reads_only);
  const int id = plan.nodes()[static_cast<std::size_t>(step.node)].inputs[input];
  const std::int64_t bytes = plan.values()[static_cast<std::size_t>(id)].type.bytes();
  return {{{step.offsets[input], step.offsets[input] + bytes}},
          {{step.scratch, step.scratch + step.kernel->needs.scratch_bytes}}};
}

struct Place {
  std::size_t prepared = 0, first = 0, last = 0;  // levels: of a preparing phase, of the first other and the last phase
};

std::map<int, Place> places_of(const Plan& plan, const std::vector<Level>& levels) {
  std::map<int, Place> places;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    for (const Task& task : levels[level]) {
      const bool alone = prepares(plan.steps()[static_cast<std::size_t>(task.step)]);
      const auto [entry, fresh] = places.emplace(task.step, Place{level, level, level});
      EXPECT_EQ(task.phase == 0, fresh);
      if (task.phase == 1 && alone) entry->second.first = level;
      EXPECT_TRUE(fresh || (task.phase == 1 && alone ? level > entry->second.last : level == entry->second.last + 1))
          << "phases follow each other";
      entry->second.last = level;
    }
  }
  return places;
}

bool conflict(const Touches& a, const Touches& b) {
  return overlap(a.writes, b.reads) || overlap(a.reads, b.writes) || overlap(a.writes, b.writes);
}

class Levels : public testing::TestWithParam<Watching> {};

TEST_P(Levels, NothingRunsBesideWhatSharesItsMemory) {
  const auto plan = test::several_kernels();
  const std::map<int, Place> places = places_of(*plan, dependency_levels(*plan, GetParam()));
  int conflicts = 0, prepared = 0;
  for (const auto& [later, late] : places) {
    const Step& late_step = plan->steps()[static_cast<std::size_t>(later)];
    const Touches b = touches_of(*plan, late_step);
    for (const auto& [earlier, early] : places) {
      if (earlier >= later) continue;
      const Touches a = touches_of(*plan, plan->steps()[static_cast<std::size_t>(earlier)]);
      if (prepares(late_step) && conflict(a, touches_of_preparing(*plan, late_step))) {
        ++prepared;
        EXPECT_LT(early.last, late.prepared) << plan->node_name(earlier) << " and " << plan->node_name(later);
      }
      if (!conflict(a, b)) continue;
      ++conflicts;
      EXPECT_LT(early.last, late.first) << plan->node_name(earlier) << " and " << plan->node_name(later);
    }
  }
  EXPECT_GT(conflicts, static_cast<int>(places.size()) - 2);
  const auto& steps = plan->steps();
  const bool packs = std::any_of(steps.begin(), steps.end(), prepares);  // as far as the library does here
  EXPECT_EQ(prepared > 0, packs);
}

TEST_P(Levels, EveryKernelOfTheRunIsThere) {
  const auto plan = test::several_kernels();
  const std::map<int, Place> places = places_of(*plan, dependency_levels(*plan, GetParam()));
  for (std::size_t index = 0; index < plan->steps().size(); ++index) {
    const Step& step = plan->steps()[index];
    const bool runs = !step.only_watched || GetParam() == Watching::yes;
    EXPECT_EQ(places.contains(static_cast<int>(index)), runs) << plan->node_name(step.node);
  }
}

INSTANTIATE_TEST_SUITE_P(Both, Levels, testing::Values(Watching::no, Watching::yes));

TEST(LevelsOf, KernelsThatHaveNothingInCommonShareALevel) {
  Graph g;
  const Wire x = g.input("x", {{8}, DType::f32});
  g.output("a", exp(x));
  g.output("b", tanh(x));
  g.output("c", square(exp(x * 2.0)));
  const std::vector<Level> levels = dependency_levels(*test::test_plan(g), Watching::yes);
  ASSERT_FALSE(levels.empty());
  EXPECT_GE(levels[0].size(), 3u);
}

// What prepares a weight does not wait for the rows that it will multiply.
TEST(LevelsOf, APhaseThatPreparesAnInputWaitsForThatInputAlone) {
  Graph g;
  const Wire x = g.input("x", {{2048, 64}, DType::f32}), w = g.parameter("w", {{64, 64}, DType::f32});
  g.output("y", matmul_rows(tanh(exp(tanh(x))), w, Transpose::yes));
  const auto plan = test::test_plan(g);
  const Step& last = plan->steps().back();
  if (!prepares(last)) GTEST_SKIP() << "the library takes weights as they are here";
  const std::vector<Level> levels = dependency_levels(*plan, Watching::yes);
  const Place place = places_of(*plan, levels).at(static_cast<int>(plan->steps().size()) - 1);
  EXPECT_LT(place.prepared, place.first - 1);
  EXPECT_EQ(place.first + 1, levels.size());
}

// By level: between two barriers everybody is in the same one.
std::map<std::pair<int, int>, std::multiset<std::int64_t>> tiles_run(const Programme& programme) {
  std::map<std::pair<int, int>, std::multiset<std::int64_t>> tiles;
  for (const auto& own : programme.workers) {
    for (const Piece& piece : own) {
      for (std::int64_t tile = piece.begin; piece.step >= 0 && tile < piece.end; ++tile)
        tiles[{piece.step, piece.phase}].insert(tile);
    }
  }
  return tiles;
}

TEST(Programme, RunsEveryTileOnce) {
  const auto plan = test::several_kernels();
  const std::vector<Level> levels = dependency_levels(*plan, Watching::yes);
  for (int workers = 1; workers <= 17; ++workers) {
    const auto tiles = tiles_run(make_programme(levels, workers));
    std::size_t tasks = 0;
    for (const Level& level : levels) {
      for (const Task& task : level) {
        ++tasks;
        std::multiset<std::int64_t> all;
        for (std::int64_t tile = 0; tile < task.tiles; ++tile) all.insert(tile);
        EXPECT_EQ(tiles.at({task.step, task.phase}), all) << task.step << " on " << workers;
      }
    }
    EXPECT_EQ(tiles.size(), tasks);
  }
}

// Counts barriers: a piece of level i must have passed more of them than any piece of an earlier level of another
// worker.
TEST(Programme, PutsABarrierBetweenLevelsUnlessOneWorkerRunsBoth) {
  const auto plan = test::several_kernels();
  const std::vector<Level> levels = dependency_levels(*plan, Watching::yes);
  std::map<std::pair<int, int>, std::size_t> level_of;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    for (const Task& task : levels[level]) level_of[{task.step, task.phase}] = level;
  }
  struct Done {
    std::size_t level, worker;
    int barriers;
  };
  for (const int workers : {2, 3, 8, 16}) {
    const Programme programme = make_programme(levels, workers);
    std::vector<Done> done;
    std::set<int> totals;
    for (std::size_t worker = 0; worker < programme.workers.size(); ++worker) {
      int barriers = 0;
      for (const Piece& piece : programme.workers[worker]) {
        if (piece.step < 0) {
          ++barriers;
        } else {
          done.push_back({level_of.at({piece.step, piece.phase}), worker, barriers});
        }
      }
      totals.insert(barriers);
    }
    EXPECT_EQ(totals.size(), 1u) << "everybody waits as often";
    for (const Done& a : done) {
      for (const Done& b : done) {
        if (a.level >= b.level) continue;
        EXPECT_LE(a.barriers + (a.worker == b.worker ? 0 : 1), b.barriers)
            << "levels " << a.level << " and " << b.level;
      }
    }
  }
}

// Twenty equal tiles in two phases of ten are one phase of twenty to four workers: five each, not six.
TEST(Programme, SharesTheWorkOfALevelEvenly) {
  const std::vector<Level> levels = {{{0, 0, 10, 1000}, {1, 0, 10, 1000}}};
  for (const auto& own : make_programme(levels, 4).workers) {
    std::int64_t tiles = 0;
    for (const Piece& piece : own) tiles += piece.end - piece.begin;
    EXPECT_EQ(tiles, 5);
  }
}

}  // namespace
}  // namespace norma
