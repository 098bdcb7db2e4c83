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
    examples.push_back({Tokens(begin(batch.ids("tokens")), begin(batch.ids("tokens")) + time),
                        Tokens(begin(batch.ids("targets")), begin(batch.ids("targets")) + time)});
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

Tokens answer_of(const std::string& task, Tokens symbols) {
  if (task == "reverse") std::reverse(symbols.begin(), symbols.end());
  if (task == "sort") std::sort(symbols.begin(), symbols.end());
  return symbols;
}

void check_transduction(const std::string& task) {
  for (const int time : {2, 3, 31, 64}) {
    for (const Example& row : rows_of({.task = task, .symbols = 9}, 20, time)) {
      const std::size_t n = static_cast<std::size_t>(time) / 2;
      const Tokens expected = answer_of(task, Tokens(row.inputs.begin(), row.inputs.begin() + n));
      EXPECT_EQ(row.inputs[n], 9);
      EXPECT_EQ(Tokens(row.targets.begin() + n, row.targets.begin() + 2 * n), expected);
      EXPECT_EQ(std::count(row.targets.begin(), row.targets.end(), kIgnored), static_cast<long>(time - n));
      for (std::size_t i = 0; i + 1 < n; ++i) EXPECT_EQ(row.inputs[n + 1 + i], expected[i]);
    }
  }
}

TEST(Copy, RepeatsItsFirstHalf) { check_transduction("copy"); }
TEST(Reverse, TurnsItsFirstHalfAround) { check_transduction("reverse"); }
TEST(Sort, OrdersItsFirstHalf) { check_transduction("sort"); }

// A decoder's batches are what they were before the tasks had a second form: runs of earlier versions resume on them.
TEST(Transduction, ADecodersBatchesKeepTheirBits) {
  const auto bits = [](const char* task) {
    const auto source = open_source({.task = task, .symbols = 9}, {4, 33, 0});
    std::uint64_t hash = 0;
    Batch batch;
    const auto add = [&](const Tokens& all) {
      for (const std::int32_t token : all) hash = hash * 1099511628211U + static_cast<std::uint32_t>(token);
    };
    for (const std::uint64_t index : {0, 7}) {
      source->fill(index, 3, batch);
      add(batch.ids("tokens"));
      add(batch.ids("targets"));
    }
    source->fill_evaluation(2, batch);
    add(batch.ids("tokens"));
    add(batch.ids("targets"));
    EXPECT_EQ(source->vocabulary(), 10);
    EXPECT_EQ(batch.tensors().size(), 2u) << "nothing else";
    return hash;
  };
  EXPECT_EQ(bits("copy"), 271830538416099267U);
  EXPECT_EQ(bits("sort"), 3225154494630437130U);
}

// The encoder reads "x <eos>", the decoder reads "<bos> y" and says "y <eos>", as in translation.
void check_pairs(const std::string& task) {
  for (const auto& [time, source_time] : {std::pair{2, 2}, {3, 9}, {33, 33}, {20, 12}}) {
    const auto source = open_source({.task = task, .symbols = 9}, {5, time, source_time});
    EXPECT_EQ(source->optimum(), 0.0);
    EXPECT_EQ(source->vocabulary(), 12);
    const SpecialTokens marks = source->special();
    EXPECT_EQ(marks.padding, 9);
    EXPECT_EQ(marks.beginning, 10);
    EXPECT_EQ(marks.end, 11);
    Batch batch;
    source->fill(5, 11, batch);
    const std::ptrdiff_t n = std::min(time, source_time) - 1;
    for (std::ptrdiff_t row = 0; row < 5; ++row) {
      const auto read = batch.ids("source").begin() + row * source_time;
      const auto said = batch.ids("tokens").begin() + row * time, asked = batch.ids("targets").begin() + row * time;
      const Tokens x(read, read + n), y = answer_of(task, x);
      for (const std::int32_t symbol : x) EXPECT_TRUE(symbol >= 0 && symbol < 9);
      EXPECT_EQ(read[n], marks.end);
      EXPECT_EQ(std::count(read, read + source_time, marks.padding), source_time - n - 1);
      EXPECT_EQ(said[0], marks.beginning);
      EXPECT_EQ(Tokens(said + 1, said + n + 1), y);
      EXPECT_EQ(std::count(said, said + time, marks.padding), time - n - 1);
      EXPECT_EQ(Tokens(asked, asked + n), y);
      EXPECT_EQ(asked[n], marks.end);
      EXPECT_EQ(std::count(asked, asked + time, kIgnored), time - n - 1);
      EXPECT_EQ(batch.ids("source_lengths")[static_cast<std::size_t>(row)], n + 1);
      EXPECT_EQ(batch.ids("lengths")[static_cast<std::size_t>(row)], n + 1);
    }
  }
}

TEST(Transduction, HasTwoSidesForAnEncoderDecoder) {
  for (const char* task : {"copy", "reverse", "sort"}) check_pairs(task);
}

// Whatever is not asked is the language; what is asked was the language.
TEST(MaskedGrammar, HidesAShareOfTheGrammar) {
  constexpr BatchShape kShape{30, 100, 0};
  const auto whole = open_source({}, kShape), source = open_source({.task = "masked_grammar"}, kShape);
  EXPECT_EQ(source->optimum(), std::nullopt);
  EXPECT_EQ(source->vocabulary(), 17) << "16 symbols and <mask>, no start mark";
  EXPECT_EQ(source->special().mask, 16);
  EXPECT_EQ(source->describe().find("nats"), std::string::npos) << "of another task: " << source->describe();
  Batch batch, text;
  int masked = 0, counted = 0;
  for (std::uint64_t index = 0; index < 10; ++index) {
    source->fill(index, 3, batch);
    whole->fill(index, 3, text);
    for (std::size_t i = 0; i < batch.ids("tokens").size(); ++i) {
      EXPECT_EQ(batch.ids("targets")[i] == kIgnored ? batch.ids("tokens")[i] : batch.ids("targets")[i],
                text.ids("targets")[i]);
      counted += batch.ids("targets")[i] != kIgnored;
      masked += batch.ids("tokens")[i] == 16;
    }
  }
  EXPECT_EQ(counted, 10 * 30 * 15);
  EXPECT_NEAR(masked / 4500.0, 0.8, 0.03);
}

TEST(MaskedSentences, ShowsWhatIsHidden) {
  const auto source = open_source({.task = "masked_sentences", .mask_fraction = 0.5}, {2, 40, 0});
  Batch batch;
  source->fill(0, 1, batch);
  EXPECT_EQ(std::count(batch.ids("targets").begin(), batch.ids("targets").end(), kIgnored), 40);
  EXPECT_EQ(source->decode(Tokens{0, source->special().mask, 1}), ". <mask> old");
}

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
  for (const char* task : {"copy", "reverse", "sort"}) {
    for (const BatchShape& shape : {BatchShape{1, 1, 0}, {1, 1, 8}, {1, 8, 1}})
      EXPECT_NE(error_of([&] { open_source({.task = task}, shape); }).find("at least 2"), std::string::npos);
  }
  for (const char* task : {"masked_grammar", "masked_sentences"}) {
    for (const double share : {0.0, -1.0, 1.5})
      EXPECT_NE(error_of([&] {
                  open_source({.task = task, .mask_fraction = share}, {1, 8, 0});
                }).find("mask_fraction"),
                std::string::npos);
    EXPECT_NE(error_of([&] {
                open_source({.task = task, .depth = 11}, {1, 8, 0});
              }).find("data.depth is 11"),
              std::string::npos);
  }
  EXPECT_NE(error_of([] { open_source({.task = "recall"}, {1, 2, 0}); }).find("at least 3"), std::string::npos);
  EXPECT_NE(error_of([] {
              open_source({.task = "copy", .symbols = 1}, {1, 8, 0});
            }).find("data.symbols is 1"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
