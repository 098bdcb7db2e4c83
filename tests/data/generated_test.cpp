// Tasks with one right answer: a reader that only sees the inputs, and follows the task's words by brute force, must
// find every counted target, so the loss of the best predictor is 0 as claimed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "files.h"
#include "norma/data/source.h"

namespace norma {
namespace {

using Tokens = std::vector<std::int32_t>;

struct Example {
  Tokens inputs, targets;
};

std::vector<Example> rows_of(const DataConfig& config, std::int64_t rows, std::int64_t time) {
  const auto source = open_source(config, {rows, time, 0});
  EXPECT_EQ(source->optimum(), 0.0);
  Batch batch;
  source->fill(5, 11, batch);
  std::vector<Example> examples;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = [&](const Tokens& all) { return all.begin() + row * time; };
    examples.push_back({Tokens(begin(batch.tokens), begin(batch.tokens) + time),
                        Tokens(begin(batch.targets), begin(batch.targets) + time)});
  }
  return examples;
}

TEST(Hops, AnswersFollowFromThePairs) {
  for (const auto& [symbols, hops, time] : {std::tuple{2, 1, 4}, {5, 4, 33}, {8, 4, 64}, {31, 7, 100}, {7, 3, 19}}) {
    std::map<int, int> asked;
    for (const Example& row : rows_of({.task = "hops", .hops = hops, .symbols = symbols}, 50, time)) {
      std::map<int, int> next;
      for (int i = 0; i < symbols; ++i) next[row.inputs[i] / symbols] = row.inputs[i] % symbols;
      ASSERT_EQ(next.size(), static_cast<std::size_t>(symbols));
      int at = 0, cycle = 0;
      do {
        at = next.at(at);
        ++cycle;
      } while (at != 0);
      EXPECT_EQ(cycle, symbols) << "one cycle";
      std::set<int> queried;
      int counted = 0;
      for (int t = 0; t < time; ++t) {
        if (row.targets[t] == kIgnored) continue;
        ++counted;
        const int steps = row.inputs[t - 1] - symbols * symbols - symbols + 1;
        int answer = row.inputs[t] - symbols * symbols;
        EXPECT_TRUE(queried.insert(answer).second) << "asked twice";
        for (int i = 0; i < steps; ++i) answer = next.at(answer);
        answer += symbols * symbols;
        EXPECT_EQ(row.targets[t], answer);
        ++asked[steps];
        if (t + 1 < time) {
          EXPECT_EQ(row.inputs[t + 1], answer);
        }
      }
      EXPECT_EQ(counted, std::min(symbols, (time + 1 - symbols) / 3));
    }
    EXPECT_EQ(asked.begin()->first, 1);
    EXPECT_EQ(asked.rbegin()->first, hops);
  }
}

TEST(Hops, RefusesWhatDoesNotFit) {
  EXPECT_NE(error_of([] {
              open_source({.task = "hops", .symbols = 32}, {1, 33, 0});
            }).find("need 34 tokens"),
            std::string::npos);
  EXPECT_NE(error_of([] { open_source({.task = "hops"}, {1, 3, 0}); }).find("need 4 tokens"), std::string::npos);
  EXPECT_NE(error_of([] {
              open_source({.task = "hops", .hops = 8, .symbols = 8}, {1, 64, 0});
            }).find("data.hops"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              open_source({.task = "hops", .symbols = 1 << 20}, {1, 64, 0});
            }).find("data.symbols"),
            std::string::npos);
}

void check_transduction(const std::string& task, bool sorted) {
  for (const int time : {2, 3, 31, 64}) {
    for (const Example& row : rows_of({.task = task, .symbols = 9}, 20, time)) {
      const std::size_t n = static_cast<std::size_t>(time) / 2;
      Tokens expected(row.inputs.begin(), row.inputs.begin() + n);
      if (sorted) std::sort(expected.begin(), expected.end());
      EXPECT_EQ(row.inputs[n], 9);
      EXPECT_EQ(Tokens(row.targets.begin() + n, row.targets.begin() + 2 * n), expected);
      EXPECT_EQ(std::count(row.targets.begin(), row.targets.end(), kIgnored), static_cast<long>(time - n));
      for (std::size_t i = 0; i + 1 < n; ++i) EXPECT_EQ(row.inputs[n + 1 + i], expected[i]);
    }
  }
}

TEST(Copy, RepeatsItsFirstHalf) { check_transduction("copy", false); }
TEST(Sort, OrdersItsFirstHalf) { check_transduction("sort", true); }

TEST(Recall, ValuesBelongToTheirKeys) {
  for (const auto& [symbols, time] : {std::pair{2, 3}, {32, 64}, {3, 31}, {100, 257}}) {
    for (const Example& row : rows_of({.task = "recall", .symbols = symbols}, 20, time)) {
      const int pairs = std::min(symbols, (time + 1) / 4);
      std::map<int, int> value;
      for (int i = 0; i < pairs; ++i) value[row.inputs[2 * i]] = row.inputs[2 * i + 1];
      ASSERT_EQ(value.size(), static_cast<std::size_t>(pairs));
      std::set<int> asked;
      for (int t = 0; t < time; ++t) {
        if (row.targets[t] == kIgnored) continue;
        EXPECT_EQ(row.targets[t], value.at(row.inputs[t]));
        EXPECT_GE(row.targets[t], symbols);
        asked.insert(row.inputs[t]);
      }
      EXPECT_EQ(asked.size(), static_cast<std::size_t>(pairs));
    }
  }
}

TEST(GeneratedTasks, RefuseRowsTooShortToAsk) {
  for (const char* task : {"copy", "sort"}) {
    EXPECT_NE(error_of([&] { open_source({.task = task}, {1, 1, 0}); }).find("at least 2"), std::string::npos);
  }
  EXPECT_NE(error_of([] { open_source({.task = "recall"}, {1, 2, 0}); }).find("at least 3"), std::string::npos);
  EXPECT_NE(error_of([] {
              open_source({.task = "copy", .symbols = 1}, {1, 8, 0});
            }).find("data.symbols is 1"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
