// The sentences: a parser that shares nothing with the generator reads every row, gives each token its true
// probability, and the mean of -log p must be the entropy that the source claims.
#include "data/sentences.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "files.h"

namespace norma {
namespace {

// Tokens by name, from the printed form, so that the layout of ids is checked as well.
class Oracle {
 public:
  explicit Oracle(int depth) : depth_(depth) {}

  // Probability of `word` after what was read, then reads it. 0 for a word the language forbids here.
  double read(const std::string& word) {
    const double p = probability(word);
    if (p > 0) advance(word);
    return p;
  }

 private:
  struct Frame {
    std::string op;
    std::vector<int> values;
  };

  static double rank_chance(int rank) { return 1.0 / (rank + 1) / (1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4); }
  static bool is_noun(const std::string& w) {
    return w.size() == 2 && std::string("klmt").find(w[0]) != std::string::npos;
  }
  static bool is_verb(const std::string& w) { return w.size() == 3 && w[2] == 'r' && is_noun(w.substr(0, 2)); }
  static int vowel(const std::string& w) { return static_cast<int>(std::string("aeio").find(w[1])); }
  static int adjective(const std::string& w) {
    const std::map<std::string, int> known = {{"old", 0}, {"red", 1}, {"big", 2}, {"shy", 3}};
    return known.contains(w) ? known.at(w) : -1;
  }
  static bool is_operator(const std::string& w) { return w == "max(" || w == "min(" || w == "sum("; }
  static bool is_digit(const std::string& w) { return w.size() == 1 && w[0] >= '0' && w[0] <= '5'; }

  double probability(const std::string& w) const {
    switch (place_) {
      case 'n':
        if (adjective(w) >= 0) return 0.25 * rank_chance(adjective(w));
        return is_noun(w) ? 0.75 / 4 * rank_chance(vowel(w)) : 0;
      case 'a':
      case 'v': {
        const double that = place_ == 'a' && static_cast<int>(nouns_.size()) < depth_ ? 0.4 : 0;
        if (w == "that") return that;
        if (!is_verb(w) || w[0] != nouns_.back()[0]) return 0;
        return (1 - that) * rank_chance((vowel(w) - vowel(nouns_.back()) + 4) % 4);
      }
      case 'e': return is_operator(w) ? 1.0 / 3 : 0;
      case 'i': {
        const std::size_t operands = frames_.back().values.size();
        const double close = operands == 4 ? 1 : operands >= 2 ? 0.5 : 0;
        const double nest = static_cast<int>(frames_.size()) < depth_ ? 0.3 : 0;
        if (w == ")") return close;
        if (is_operator(w)) return (1 - close) * nest / 3;
        return is_digit(w) ? (1 - close) * (1 - nest) / 6 : 0;
      }
      case '=': return w == std::to_string(result_) ? 1 : 0;
      default: return w == "." ? 1 : 0;
    }
  }

  void advance(const std::string& w) {
    if (w == ".") {
      place_ = 'n';
    } else if (place_ == 'n') {
      if (is_noun(w)) {
        nouns_.push_back(w);
        place_ = 'a';
      }
    } else if (w == "that") {
      place_ = 'n';
    } else if (place_ == 'a' || place_ == 'v') {
      nouns_.pop_back();
      place_ = nouns_.empty() ? 'e' : 'v';
    } else if (is_operator(w)) {
      frames_.push_back({w, {}});
      place_ = 'i';
    } else if (place_ == '=') {
      place_ = '.';
    } else if (is_digit(w)) {
      frames_.back().values.push_back(w[0] - '0');
    } else {
      int value = frames_.back().values[0], sum = 0;
      for (const int v : frames_.back().values) {
        sum += v;
        value = frames_.back().op == "max(" ? std::max(value, v) : std::min(value, v);
      }
      if (frames_.back().op == "sum(") value = sum % 6;
      frames_.pop_back();
      if (frames_.empty()) {
        result_ = value;
        place_ = '=';
      } else {
        frames_.back().values.push_back(value);
      }
    }
  }

  int depth_;
  char place_ = '.';
  std::vector<std::string> nouns_;
  std::vector<Frame> frames_;
  int result_ = 0;
};

struct Measured {
  double mean = 0, error = 0;  // of -log p in nats, and its standard error over rows
};

Measured measure(int depth, std::int64_t time, int rows) {
  const std::unique_ptr<Source> source = open_source({.task = "sentences", .depth = depth}, {rows, time, 0});
  Batch batch;
  source->fill(3, 7, batch);
  double sum = 0, squares = 0;
  for (int row = 0; row < rows; ++row) {
    Oracle oracle(depth);
    double nats = 0;
    for (std::int64_t t = 0; t < time; ++t) {
      const std::size_t at = static_cast<std::size_t>(row * time + t);
      if (t == 0) {
        EXPECT_EQ(oracle.read(source->decode({&batch.ids("tokens")[at], 1})), 1.0);
      } else {
        EXPECT_EQ(batch.ids("tokens")[at], batch.ids("targets")[at - 1]);
      }
      const std::string word = source->decode({&batch.ids("targets")[at], 1});
      const double p = oracle.read(word);
      if (p == 0) {
        ADD_FAILURE() << "'" << word << "' is not in the language at " << t << " of: "
                      << source->decode({&batch.ids("tokens")[static_cast<std::size_t>(row * time)],
                                         static_cast<std::size_t>(t + 1)});
        return {};
      }
      nats -= std::log(p) / static_cast<double>(time);
    }
    sum += nats;
    squares += nats * nats;
  }
  const double mean = sum / rows;
  return {mean, std::sqrt((squares / rows - mean * mean) / rows)};
}

TEST(Sentences, ClaimsTheEntropyThatTrueProbabilitiesGive) {
  for (const int depth : {1, 2, 4, 6}) {
    for (const std::int64_t time : {1, 7, 33, 128}) {
      const Measured measured = measure(depth, time, 4000);
      const double claimed = *open_source({.task = "sentences", .depth = depth}, {1, time, 0})->optimum();
      EXPECT_NEAR(measured.mean, claimed, 4.5 * measured.error + 1e-12) << "depth " << depth << ", time " << time;
      EXPECT_LT(measured.error, 0.01 * claimed);
    }
  }
}

TEST(Sentences, ApproachesItsEntropyRate) {
  for (const int depth : {1, 3, 5}) {
    const double rate = sentences::entropy_rate(depth);
    const double near = sentences::mean_entropy(depth, 500), far = sentences::mean_entropy(depth, 4000);
    EXPECT_NEAR(far, rate, 2e-3) << depth;
    // What remains is the first sentences' share, which falls as 1/time.
    EXPECT_NEAR((near - rate) / (far - rate), 8.0, 0.5) << depth;
  }
}

TEST(Sentences, FirstTokenIsANounOrAdjective) {
  // By hand: h(1/4) + H(12,6,4,3 of 25) + 3/4 ln 4.
  const double p[] = {12.0 / 25, 6.0 / 25, 4.0 / 25, 3.0 / 25};
  double hand = -0.25 * std::log(0.25) - 0.75 * std::log(0.75) + 0.75 * std::log(4.0);
  for (const double x : p) hand -= x * std::log(x);
  EXPECT_NEAR(sentences::mean_entropy(4, 1), hand, 1e-12);
}

TEST(Sentences, NestsAsDeepAsItMay) {
  const std::unique_ptr<Source> source = open_source({.task = "sentences", .depth = 3}, {200, 100, 0});
  Batch batch;
  source->fill(0, 1, batch);
  int deepest = 0;
  for (std::size_t row = 0; row < 200; ++row) {
    int open = 0;
    for (std::size_t t = 0; t < 100; ++t) {
      const std::int32_t token = batch.ids("tokens")[row * 100 + t];
      if (token >= sentences::kOperator && token < sentences::kClose) deepest = std::max(deepest, ++open);
      if (token == sentences::kClose) --open;
    }
  }
  EXPECT_EQ(deepest, 3);
}

TEST(Sentences, RefusesADepthItCannotBuild) {
  EXPECT_EQ(error_of([] {
              open_source({.task = "sentences", .depth = 7}, {1, 8, 0});
            }),
            "data.depth is 7; expected 1 to 6");
  EXPECT_EQ(error_of([] {
              open_source({.task = "sentences", .depth = -1}, {1, 8, 0});
            }),
            "data.depth is -1; expected 1 to 6");
}

TEST(Sentences, SaysWhatItIs) {
  const std::unique_ptr<Source> source = open_source({.task = "sentences"}, {2, 64, 0});
  EXPECT_EQ(source->vocabulary(), 48);
  EXPECT_NE(source->describe().find("nats a token"), std::string::npos);
  const std::int32_t odd[] = {0, -100, 48, 47, 37};
  EXPECT_EQ(source->decode(odd), ". <-100> <48> 5 that");
}

}  // namespace
}  // namespace norma
