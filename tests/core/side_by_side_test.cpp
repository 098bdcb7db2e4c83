#include "norma/core/side_by_side.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "error_of.h"
#include "norma/core/error.h"

namespace norma {
namespace {

TEST(SideBySide, RunsEveryJobOnce) {
  for (const int at_once : {0, 1, 2, 5, 100}) {
    std::vector<int> runs(37, 0);
    side_by_side(runs.size(), at_once, [&](std::size_t i) { ++runs[i]; });
    EXPECT_EQ(runs, std::vector<int>(37, 1)) << at_once;
  }
  side_by_side(0, 4, [](std::size_t) { FAIL(); });
}

TEST(SideBySide, NoMoreAtOnceThanAskedFor) {
  std::atomic<int> now = 0, most = 0;
  side_by_side(20, 3, [&](std::size_t) {
    const int running = ++now;
    int seen = most;
    while (running > seen && !most.compare_exchange_weak(seen, running)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --now;
  });
  EXPECT_LE(most, 3);
}

TEST(SideBySide, WhatFailsBesideOthersIsTriedAlone) {
  std::atomic<int> first_tries = 0;
  std::vector<std::atomic<int>> runs(8);
  side_by_side(runs.size(), 4, [&](std::size_t i) {
    if (++runs[i] == 1 && i % 2 == 1) {
      ++first_tries;
      fail("no room");
    }
  });
  EXPECT_EQ(first_tries, 4);
  for (std::size_t i = 0; i < runs.size(); ++i) EXPECT_EQ(runs[i], i % 2 == 1 ? 2 : 1);
}

TEST(SideBySide, WhatFailsAgainIsTheCallers) {
  EXPECT_EQ(test::error_of([] {
              side_by_side(8, 4, [](std::size_t i) {
                if (i > 4) fail("job {}", i);
              });
            }),
            "job 5");
}

}  // namespace
}  // namespace norma
