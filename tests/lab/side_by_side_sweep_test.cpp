// Groups of a sweep side by side: how threads and memory are shared, and that nothing else depends on it.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lab/sweep/cohorts.h"
#include "lab/sweep_check.h"
#include "lab/workshop.h"
#include "norma/core/error.h"
#include "temporary_folder.h"

namespace norma {
namespace {

using test::expect_same_bits;
using test::small_sweep;
using test::sweep;
using test::TemporaryFolder;

TEST(Workshop, ThreadsAreSharedAndGoToThoseStillAtWork) {
  Workshop shop(7, 3);
  std::atomic<int> arrived = 0, left = 0;
  std::atomic<int> sum = 0, last = 0;
  shop.run(
      3,
      [&](std::size_t job, const Workshop::Threads& threads) {
        sum += threads();  // 3, 2 and 2, since all begin at once
        ++arrived;
        while (arrived < 3) std::this_thread::yield();
        if (job == 2) {
          while (left < 2 || threads() < 7) std::this_thread::yield();
          last = threads();
        }
        ++left;
      },
      [] {});
  EXPECT_EQ(sum, 7);
  EXPECT_EQ(last, 7);
}

TEST(Workshop, TheFirstErrorEndsTheOthersAndIsThrown) {
  Workshop shop(2, 2);
  std::atomic<bool> stop = false;
  std::atomic<int> begun = 0;
  const auto job = [&](std::size_t index, const Workshop::Threads&) {
    ++begun;
    if (index == 1) fail("job {} is broken", index);
    while (!stop) std::this_thread::yield();
  };
  try {
    shop.run(20, job, [&] { stop = true; });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "job 1 is broken");
  }
  EXPECT_EQ(begun, 2) << "nobody begins after it";
}

TEST(Workshop, AJobThatThrowsIsRunOnceMoreAlone) {
  Workshop shop(4, 2);
  std::atomic<int> attempts = 0, at_work = 0;
  const auto job = [&](std::size_t index, const Workshop::Threads& threads) {
    ++at_work;
    if (index == 1 && attempts++ == 0) {
      --at_work;
      fail("no memory");
    }
    if (attempts == 2 && index == 1) {
      EXPECT_EQ(at_work, 1);
      EXPECT_EQ(threads(), 4);
    }
    --at_work;
  };
  shop.run_each(5, job);
  EXPECT_EQ(attempts, 2);
  EXPECT_THROW(shop.run_each(2, [](std::size_t, const Workshop::Threads&) { fail("broken"); }), Error);
}

TEST(Spread, PartsTakeTheThreadsThatComeFree) {
  std::atomic<int> threads = 1, inside = 0, most = 0;
  std::vector<std::atomic<int>> runs(12);
  const auto part = [&](std::size_t index) {
    const int now = ++inside;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    ++runs[index];
    if (index < 2) {
      EXPECT_EQ(now, 1) << "there is one thread";
    }
    if (index == 1) threads = 3;  // the next parts wait for each other
    if (index >= 2 && index < 5) {
      while (most < 3) std::this_thread::yield();
    }
    --inside;
  };
  spread(
      runs.size(), [&] { return threads.load(); }, part);
  EXPECT_EQ(most, 3);
  for (const auto& count : runs) EXPECT_EQ(count, 1);
  const auto broken = [](std::size_t index) {
    if (index == 3) fail("part 3");
  };
  EXPECT_THROW(spread(
                   8, [] { return 4; }, broken),
               Error);
  EXPECT_THROW(spread(8, {}, broken), Error);
}

TEST(CohortLimits, AGroupIsDividedWhereItHasSeveralThreads) {
  EXPECT_EQ(cohort_limits({100, 50, 0, 200}, 16, 0, 3000, 64).parts, 5);
  EXPECT_EQ(cohort_limits({100, 100, 100, 100}, 16, 0, 250, 64).parts, 1) << "memory is for two groups only";
  EXPECT_EQ(cohort_limits({1, 1, 1}, 2, 0, 1000, 8).parts, 1);
  std::vector<SweepCell> cells(5);
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i].config.train.lr = static_cast<double>(1 + i);
  const std::vector<GroupPart> parts = parts_of(cells, {0, 1, 2, 4}, 64, 3);
  ASSERT_EQ(parts.size(), 3);
  EXPECT_EQ(parts[0].cells, (std::vector<std::size_t>{4, 0})) << "the highest rates to different parts";
  EXPECT_EQ(parts[1].cells, (std::vector<std::size_t>{2}));
  EXPECT_EQ(parts[0].most_members, 21) << "all parts together as many as the group alone";
  EXPECT_EQ(parts_of(cells, {0, 1}, 64, 8).size(), 2) << "no part is empty";
  EXPECT_EQ(parts_of(cells, {0, 1, 2}, 1, 8).size(), 1);
}

TEST(CohortLimits, AllCohortsTogetherFitIntoMemory) {
  const CohortLimits limits = cohort_limits({100, 50, 0, 200}, 16, 0, 3000, 64);
  EXPECT_EQ(limits.at_once, 3) << "one group has nothing to train";
  EXPECT_EQ(limits.most_members, (std::vector<std::int64_t>{10, 20, 1, 5}));
  const CohortLimits tight = cohort_limits({100, 100, 100, 100}, 16, 0, 250, 64);
  EXPECT_EQ(tight.at_once, 2);
  EXPECT_EQ(tight.most_members[0], 1);
  EXPECT_EQ(cohort_limits({100, 100}, 16, 0, 10, 64).at_once, 1) << "one must run";
  EXPECT_EQ(cohort_limits({1, 1}, 1, 0, 1000, 8).at_once, 1);
  EXPECT_EQ(cohort_limits({1, 1}, 2, 5, 1000, 8).most_members[1], 5);
}

SweepConfig three_schemes(int threads) {
  SweepConfig config = small_sweep(20);
  override_sweep(config, "train.lr=[1e-3, 3e-3, 1e5]");
  override_sweep(config, "model.scheme=[pre, post, rezero]");
  override_sweep(config, "train.threads=" + std::to_string(threads));
  config.most_members = 2;
  return config;
}

struct Alone final : SweepObserver {
  void stepped(const SweepProgress& progress, const Cohort& cohort) override {
    together += inside.exchange(true) ? 1 : 0;
    ++steps;
    if (every > 0 && steps % every == 0) stop = true;
    if (broken == cohort.config().model.scheme.asked() && cohort.step() == 5) {
      inside = false;
      fail("the disk is gone");
    }
    EXPECT_GE(progress.share, 0);
    EXPECT_LE(progress.share, 1);
    inside = false;
  }
  std::atomic<bool> inside{false}, stop{false};
  int together = 0, steps = 0, every = 0;
  std::string broken = "none";
};

void expect_same_outcomes(const SweepResult& one, const SweepResult& other) {
  ASSERT_EQ(one.outcomes.size(), other.outcomes.size());
  for (std::size_t i = 0; i < one.outcomes.size(); ++i) {
    const RunOutcome &a = one.outcomes[i], &b = other.outcomes[i];
    EXPECT_EQ(a.status, b.status);
    EXPECT_EQ(a.curve.step, b.curve.step);
    if (a.diverged()) continue;
    EXPECT_EQ(a.curve.loss, b.curve.loss);
    EXPECT_EQ(a.evaluations.loss, b.evaluations.loss);
  }
}

TEST(SideBySide, TheBitsAreThoseOfOneAfterAnother) {
  const TemporaryFolder folder;
  const SweepResult one = sweep(three_schemes(1), folder / "one");
  Alone observer;
  const SweepResult four =
      run_sweep({.config = three_schemes(4), .directory = folder / "four"}, observer, observer.stop);
  EXPECT_EQ(observer.together, 0) << "the observer hears one at a time";
  expect_same_outcomes(one, four);
}

// With six threads for three groups each goes in two parts; what a stop leaves under way is taken up whole.
TEST(SideBySide, PartsOfAGroupChangeNoBit) {
  const TemporaryFolder folder;
  struct Count final : SweepObserver {
    void planned(std::int64_t, std::int64_t, int count) override { cohorts = count; }
    int cohorts = 0;
  } counted;
  const std::atomic<bool> go_on = false;
  const SweepResult whole = run_sweep({.config = three_schemes(6), .directory = folder / "whole"}, counted, go_on);
  EXPECT_EQ(counted.cohorts, 9) << "two cells and one of each group, none beside another in a cohort";
  expect_same_outcomes(sweep(three_schemes(1), folder / "one"), whole);
  Alone broken;
  broken.every = 11;
  SweepResult result;
  do {
    broken.stop = false;
    result = run_sweep({.config = three_schemes(6), .directory = folder / "broken"}, broken, broken.stop);
  } while (result.interrupted);
  for (const RunOutcome& run : result.outcomes) expect_same_bits(folder / "broken", folder / "whole", run.id);
}

TEST(SideBySide, StoppedAtAnyStepNoStepIsTakenTwice) {
  const TemporaryFolder folder;
  Alone straight, broken;
  const SweepConfig config = three_schemes(3);
  const SweepResult whole = run_sweep({.config = config, .directory = folder / "whole"}, straight, straight.stop);
  broken.every = 11;
  SweepResult result;
  int starts = 0;
  do {
    broken.stop = false;
    result = run_sweep({.config = config, .directory = folder / "broken"}, broken, broken.stop);
    ASSERT_LT(++starts, 100);
  } while (result.interrupted);
  EXPECT_GT(starts, 3);
  EXPECT_EQ(broken.steps, straight.steps);
  for (const RunOutcome& run : result.outcomes) expect_same_bits(folder / "broken", folder / "whole", run.id);
}

TEST(SideBySide, AnErrorInOneNamesItAndTheOthersStopCleanly) {
  const TemporaryFolder folder;
  Alone observer;
  observer.broken = "post";
  try {
    run_sweep({.config = three_schemes(3), .directory = folder / "sweep"}, observer, observer.stop);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "post, 2 layers: the disk is gone");
  }
  const SweepResult straight = sweep(three_schemes(1), folder / "whole");
  const SweepResult mended = sweep(three_schemes(3), folder / "sweep");
  for (std::size_t i = 0; i < straight.outcomes.size(); ++i)
    EXPECT_EQ(straight.outcomes[i].evaluations.loss, mended.outcomes[i].evaluations.loss);
}

}  // namespace
}  // namespace norma
