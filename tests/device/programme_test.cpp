// Levels, and their division among threads: nothing runs before what it needs, and every tile runs once.
#include "device/cpu/programme.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "device/step_plan.h"
#include "device/touches.h"
#include "norma/backends/cpu.h"
#include "norma/norms/row.h"
#include "norma/ops/elementwise.h"

namespace norma {
namespace {

using test::conflict;
using test::touches_of;

// The level of each phase of each step.
std::map<std::pair<int, int>, std::size_t> places_of(const std::vector<Level>& levels) {
  std::map<std::pair<int, int>, std::size_t> places;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    for (const Task& task : levels[level]) EXPECT_TRUE(places.emplace(std::pair(task.step, task.phase), level).second);
  }
  return places;
}

class Levels : public testing::TestWithParam<Watching> {};

TEST_P(Levels, NothingRunsBesideWhatSharesItsMemory) {
  const auto plan = test::several_kernels();
  const auto places = places_of(dependency_levels(*plan, GetParam()));
  int conflicts = 0;
  for (const auto& [later, late] : places) {
    const test::Touches b = touches_of(*plan, {later.first, later.second});
    for (const auto& [earlier, early] : places) {
      if (earlier >= later) break;
      const bool follows = earlier.first == later.first;  // phases of one kernel follow each other
      if (!follows && !conflict(touches_of(*plan, {earlier.first, earlier.second}), b)) continue;
      ++conflicts;
      EXPECT_LT(early, late) << plan->node_name(earlier.first) << " and " << plan->node_name(later.first);
    }
  }
  EXPECT_GT(conflicts, static_cast<int>(places.size()) - 2);
}

TEST_P(Levels, EveryKernelOfTheRunIsThere) {
  const auto plan = test::several_kernels();
  const auto places = places_of(dependency_levels(*plan, GetParam()));
  for (std::size_t index = 0; index < plan->steps().size(); ++index) {
    const Step& step = plan->steps()[index];
    const bool runs = !step.only_watched || GetParam() == Watching::yes;
    for (int phase = 0; phase < static_cast<int>(phases_of(step).size()); ++phase)
      EXPECT_EQ(places.contains({static_cast<int>(index), phase}), runs) << plan->node_name(step.node);
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
  const std::vector<Phase>& phases = phases_of(plan->steps().back());
  if (phases.size() == 1) GTEST_SKIP() << "the library takes weights as they are here";
  const auto places = places_of(dependency_levels(*plan, Watching::yes));
  const int last = static_cast<int>(plan->steps().size()) - 1;
  EXPECT_LT(places.at({last, 0}) + 1, places.at({last, 1}));
}

// The sums behind a norm's backward pass are for the optimiser: what reads dx does not wait for them, and their scratch
// is not the next kernel's.
TEST(LevelsOf, ALastPhaseIsWaitedForByReadersOfItsOutputsAlone) {
  Graph g;
  const Wire x = g.input("x", {{2048, 64}, DType::f32}), w = g.parameter("w", {{64, 64}, DType::f32});
  const Wire gain = g.parameter("gain", {{64}, DType::f32}), bias = g.parameter("bias", {{64}, DType::f32});
  const Wire wrt[] = {x, gain, bias};
  const Wires gradients = differentiate(mean_all(square(layer_norm(x, gain, bias))), wrt);
  g.output("y", matmul_rows(gradients[0], w, Transpose::yes));
  g.output("dgain", gradients[1]);
  g.output("dbias", gradients[2]);
  const auto plan = compile(g, cpu_backend());
  const auto places = places_of(dependency_levels(*plan, Watching::yes));
  const auto step_of = [&](std::string_view op) {
    const auto found = std::ranges::find_if(plan->steps(), [&](const Step& step) {
      return plan->nodes()[static_cast<std::size_t>(step.node)].op->name() == op;
    });
    EXPECT_NE(found, plan->steps().end()) << op;
    return static_cast<int>(found - plan->steps().begin());
  };
  const int norm = step_of("layer_norm_backward"), reader = step_of("matmul");
  EXPECT_EQ(phases_of(plan->steps()[static_cast<std::size_t>(norm)]).size(), 2u) << "both sums are one phase";
  EXPECT_EQ(places.at({norm, 1}), places.at({norm, 0}) + 1);
  const auto last = static_cast<int>(phases_of(plan->steps()[static_cast<std::size_t>(reader)]).size()) - 1;
  EXPECT_EQ(places.at({reader, last}), places.at({norm, 1}));
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
