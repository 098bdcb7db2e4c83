// Who works on which member: each member once, groups that are complete, no thread idle that could help.
#include "device/cpu/arrangement.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

namespace norma {
namespace {

double shared_well(int workers) { return (1 + 0.05 * (workers - 1)) / workers; }
double better_alone(int workers) { return 1 + 0.1 * workers; }

TEST(Arrangement, EachMemberHasAGroupOfItsOwn) {
  for (int threads = 1; threads <= 17; ++threads) {
    for (int members = 1; members <= 40; ++members) {
      const Arrangement arrangement = arrange(members, threads, shared_well);
      ASSERT_EQ(arrangement.workers.size(), static_cast<std::size_t>(threads));
      std::map<int, std::set<int>> ranks;
      std::map<int, std::set<const Group*>> groups;
      std::map<int, int> sizes;
      for (const auto& shifts : arrangement.workers) {
        for (const Shift& shift : shifts) {
          EXPECT_TRUE(ranks[shift.member].insert(shift.rank).second);
          groups[shift.member].insert(shift.group);
          sizes[shift.member] = shift.workers;
          EXPECT_EQ(shift.group == nullptr, shift.workers == 1);
          if (shift.group != nullptr) {
            EXPECT_EQ(shift.group->barrier.size(), shift.workers);
          }
        }
      }
      EXPECT_EQ(ranks.size(), static_cast<std::size_t>(members));
      for (const auto& [member, own] : ranks) {
        EXPECT_EQ(own.size(), static_cast<std::size_t>(sizes[member]));
        EXPECT_EQ(*own.rbegin(), sizes[member] - 1);
        EXPECT_EQ(groups[member].size(), 1u);
      }
    }
  }
}

// A group waits for its slowest thread, which may be in an earlier round: rounds must come in one order for all.
TEST(Arrangement, NobodyWaitsInACircle) {
  for (int members = 1; members <= 40; ++members) {
    for (const auto& shifts : arrange(members, 16, shared_well).workers) {
      for (std::size_t i = 1; i < shifts.size(); ++i) EXPECT_LT(shifts[i - 1].member, shifts[i].member);
    }
  }
}

TEST(Arrangement, SpreadsMembersSoThatTheStepIsShort) {
  EXPECT_EQ(choose_rounds(1, 16, shared_well), (std::vector<int>{1}));
  EXPECT_EQ(choose_rounds(8, 16, shared_well), (std::vector<int>{8}));
  EXPECT_EQ(choose_rounds(9, 16, shared_well), (std::vector<int>{8, 1}));
  EXPECT_EQ(choose_rounds(16, 16, shared_well), (std::vector<int>{16}));
  EXPECT_EQ(choose_rounds(24, 16, shared_well), (std::vector<int>{16, 8}));
  EXPECT_EQ(choose_rounds(50, 16, shared_well), (std::vector<int>{16, 16, 16, 2}));
}

TEST(Arrangement, LeavesAModelAloneThatManyThreadsMakeSlower) {
  EXPECT_EQ(choose_rounds(20, 16, better_alone), (std::vector<int>{16, 4}));
  const Arrangement one = arrange(1, 16, better_alone);
  EXPECT_EQ(one.workers[0].size(), 1u);
  EXPECT_EQ(one.workers[0][0].workers, 1);
  EXPECT_TRUE(one.groups.empty());
}

// More threads than this machine may have cores: every wait must also end when its partner has none.
TEST(Barrier, NobodyPassesBeforeAllHaveArrived) {
  for (const int size : {1, 2, 3, 4, 5, 9, 16}) {
    Barrier barrier(size);
    std::atomic<int> arrived{0};
    std::atomic<bool> early{false};
    constexpr int kRounds = 200;
    std::vector<std::thread> threads;
    for (int worker = 0; worker < size; ++worker) {
      threads.emplace_back([&, worker] {
        Patience patience(worker % 2 == 0);
        for (int round = 1; round <= kRounds; ++round) {
          arrived.fetch_add(1);
          barrier.wait(worker, patience);
          if (arrived.load() < round * size) early = true;
          barrier.wait(worker, patience);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(early) << size;
    EXPECT_EQ(arrived.load(), kRounds * size);
  }
}

// Workers of different speed, some of which have nothing of their own, for several stretches.
TEST(Handout, EveryTileIsTakenOnce) {
  constexpr int kWorkers = 5, kStretches = 60;
  const auto tiles_of = [](int worker, int stretch) { return (worker * 7 + stretch) % 4 == 0 ? 0 : 3 + worker; };
  Group group(kWorkers);
  std::vector<std::vector<std::vector<std::atomic<int>>>> times(kStretches);
  for (int stretch = 0; stretch < kStretches; ++stretch) {
    for (int worker = 0; worker < kWorkers; ++worker)
      times[static_cast<std::size_t>(stretch)].emplace_back(static_cast<std::size_t>(tiles_of(worker, stretch)));
  }
  std::vector<std::thread> threads;
  for (int worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&, worker] {
      Patience patience(false);
      for (int stretch = 0; stretch < kStretches; ++stretch) {
        if (stretch > 0) group.barrier.wait(worker, patience);
        const int open = group.handout.open(worker);
        for (int other = 0; other < kWorkers; ++other) {
          const int owner = (worker + other) % kWorkers;
          auto& taken = times[static_cast<std::size_t>(stretch)][static_cast<std::size_t>(owner)];
          for (Handout::Range range;
               (range = group.handout.take(owner, open, std::ssize(taken), other == 0)).count > 0;) {
            for (std::int64_t i = 0; i < range.count; ++i)
              taken[static_cast<std::size_t>(range.first + i)].fetch_add(1);
            if (worker == 0) std::this_thread::yield();
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& stretch : times) {
    for (const auto& tiles : stretch) {
      for (const std::atomic<int>& count : tiles) EXPECT_EQ(count.load(), 1);
    }
  }
}

}  // namespace
}  // namespace norma
