// The grammar's strings, seen from outside: as many different ones as its entropy says, all equally likely, at every
// level; and the loss of the best predictor, built by counting them, is the optimum it claims.
#include "data/grammar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "files.h"

namespace norma {
namespace {

using Tokens = std::vector<std::int32_t>;

// Aligned blocks of `size` targets and how often each came.
std::map<Tokens, double> count_blocks(const DataConfig& config, std::int64_t time, std::size_t size, int batches) {
  const auto source = open_source(config, {64, time, 0});
  std::map<Tokens, double> counts;
  Batch batch;
  for (int index = 0; index < batches; ++index) {
    source->fill(static_cast<std::uint64_t>(index), 3, batch);
    for (std::size_t at = 0; at < batch.ids("targets").size(); at += size) {
      ++counts[Tokens(batch.ids("targets").begin() + at, batch.ids("targets").begin() + at + size)];
    }
  }
  return counts;
}

TEST(Grammar, HasEquallyLikelyStringsAtEveryLevel) {
  const DataConfig config{.depth = 2, .symbols = 5, .choices = 3};
  for (const auto& [size, strings] : {std::pair{1, 5.0}, {2, 5.0 * 3}, {4, 5.0 * 27}}) {
    const auto counts = count_blocks(config, 4, static_cast<std::size_t>(size), 500);
    EXPECT_EQ(static_cast<double>(counts.size()), strings) << size;
    double all = 0, chi = 0;
    for (const auto& [block, count] : counts) all += count;
    for (const auto& [block, count] : counts) chi += std::pow(count - all / strings, 2) / (all / strings);
    // Blocks inside one string depend on each other, which can only make their counts more even or double them.
    EXPECT_LT(chi, 2 * (strings + 5 * std::sqrt(2 * strings))) << size;
  }
}

// A predictor that knows all strings of the language and uses what it has seen of the present one.
TEST(Grammar, ClaimsTheLossOfThePredictorThatKnowsEveryString) {
  const DataConfig config{.depth = 3, .symbols = 4, .choices = 2};
  std::map<Tokens, double> continuations;  // prefix -> strings that begin so
  for (const auto& [string, count] : count_blocks(config, 8, 8, 400)) {
    for (std::size_t length = 0; length <= 8; ++length)
      ++continuations[Tokens(string.begin(), string.begin() + length)];
  }
  EXPECT_EQ(continuations.at({}), 4 * std::pow(2, 7)) << "every string was seen";
  const auto source = open_source(config, {64, 8, 0});
  Batch batch;
  double nats = 0;
  for (std::int64_t index = 0; index < 8; ++index) {
    source->fill_evaluation(index, batch);
    for (std::size_t row = 0; row < 64; ++row) {
      Tokens prefix;
      for (std::size_t t = 0; t < 8; ++t) {
        const double before = continuations.at(prefix);
        prefix.push_back(batch.ids("targets")[row * 8 + t]);
        nats -= std::log(continuations.at(prefix) / before) / (8 * 64 * 8);
      }
    }
  }
  EXPECT_NEAR(nats, *source->optimum(), 1e-12);
}

TEST(Grammar, FillsAnyRowWithShorterStrings) {
  // By hand, symbols 16 and choices 3: 33 = 32 + 1, 7 = 4 + 2 + 1.
  const double symbol = std::log(16.0), rule = std::log(3.0);
  const auto optimum = [](std::int64_t time) { return *open_source({}, {1, time, 0})->optimum(); };
  EXPECT_NEAR(optimum(1), symbol, 1e-12);
  EXPECT_NEAR(optimum(2), (symbol + rule) / 2, 1e-12);
  EXPECT_NEAR(optimum(7), (3 * symbol + 4 * rule) / 7, 1e-12);
  EXPECT_NEAR(optimum(32), (symbol + 31 * rule) / 32, 1e-12);
  EXPECT_NEAR(optimum(33), (2 * symbol + 31 * rule) / 33, 1e-12);
  EXPECT_NEAR(optimum(64), optimum(32), 1e-12);
  // The pair at 4 and 5 of a row of 7 is a pair of the language, as is any at 0 and 1.
  std::set<Tokens> pairs;
  for (const auto& [pair, count] : count_blocks({}, 2, 2, 100)) pairs.insert(pair);
  EXPECT_EQ(pairs.size(), 48u);
  const auto source = open_source({}, {50, 7, 0});
  Batch batch;
  source->fill(0, 0, batch);
  for (std::size_t row = 0; row < 50; ++row) {
    const std::int32_t* const targets = &batch.ids("targets")[row * 7];
    EXPECT_EQ(batch.ids("tokens")[row * 7], 16);
    for (const int at : {0, 2, 4}) EXPECT_TRUE(pairs.contains({targets[at], targets[at + 1]}));
    for (int t = 0; t < 6; ++t) EXPECT_EQ(batch.ids("tokens")[row * 7 + t + 1], targets[t]);
  }
}

TEST(Grammar, NamesItsPlateaus) {
  const Grammar grammar({}, {1, 64, 0});
  EXPECT_NEAR(grammar.plateau(0), std::log(16.0), 1e-12);
  for (std::int64_t levels = 1; levels <= 5; ++levels) EXPECT_LT(grammar.plateau(levels), grammar.plateau(levels - 1));
  EXPECT_NEAR(grammar.plateau(5), *grammar.optimum(), 1e-12);
  EXPECT_NE(grammar.describe().find("understood: 2.773 1.936 "), std::string::npos) << grammar.describe();
}

TEST(Grammar, RefusesWhatItCannotBuild) {
  EXPECT_EQ(error_of([] { open_source({.depth = 11}, {1, 8, 0}); }), "data.depth is 11; expected 1 to 10");
  EXPECT_EQ(error_of([] { open_source({.symbols = 65}, {1, 8, 0}); }), "data.symbols is 65; expected 2 to 64");
  EXPECT_EQ(error_of([] {
              open_source({.symbols = 4, .choices = 5}, {1, 8, 0});
            }),
            "data.choices is 5; expected 1 to 4");
}

}  // namespace
}  // namespace norma
