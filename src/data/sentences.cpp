#include "data/sentences.h"

#include <array>

#include "norma/core/error.h"

namespace norma {
namespace {

using namespace sentences;

// Writes sentences until the row is full.
class SentenceWriter {
 public:
  SentenceWriter(Draws& draws, std::int64_t depth, std::int32_t* tokens, std::int32_t* targets, std::int64_t time)
      : draws_(draws), depth_(depth), tokens_(tokens), targets_(targets), time_(time) {}

  void run() {
    put(kStop);
    while (!full()) {
      clause();
      put(kDigit + expression());
      put(kStop);
    }
  }

 private:
  bool full() const { return written_ > time_; }
  // The row is one stream of time + 1 tokens: all but the last are inputs, all but the first are targets.
  void put(std::int32_t token) {
    if (full()) return;
    if (written_ > 0) targets_[written_ - 1] = token;
    if (written_ < time_) tokens_[written_] = token;
    ++written_;
  }
  bool chance(double p) { return draws_.unit() < p; }

  int rank() {
    double u = draws_.unit();
    for (int r = 0; r + 1 < kWords; ++r) {
      if (u < kRankChance[r]) return r;
      u -= kRankChance[r];
    }
    return kWords - 1;
  }

  void clause() {
    std::array<int, Sentences::kDeepest> nouns{};
    int level = 0;
    for (;; ++level) {
      while (!full() && chance(kAdjectiveChance)) put(kAdjective + rank());
      const int cls = static_cast<int>(draws_.below(kClasses));
      nouns[level] = cls * kWords + rank();
      put(kNoun + nouns[level]);
      if (level + 1 == depth_ || !chance(kThatChance)) break;
      put(kThat);
    }
    for (; level >= 0; --level) {
      const int cls = nouns[level] / kWords, word = nouns[level] % kWords;
      put(kVerb + cls * kWords + (word + rank()) % kWords);
    }
  }

  // Returns the value. The stack is explicit so that a full row stops at once.
  int expression() {
    struct Open {
      int op, operands, value;
    };
    std::array<Open, Sentences::kDeepest> stack{};
    int level = -1;
    const auto open = [&] {
      stack[++level] = {static_cast<int>(draws_.below(kOperators)), 0, 0};
      put(kOperator + stack[level].op);
    };
    const auto take = [&](int value) {
      Open& top = stack[level];
      if (top.operands++ == 0) {
        top.value = value;
      } else if (top.op == 0) {
        top.value = std::max(top.value, value);
      } else if (top.op == 1) {
        top.value = std::min(top.value, value);
      } else {
        top.value = (top.value + value) % kDigits;
      }
    };
    open();
    while (!full()) {
      const int operands = stack[level].operands;
      if (operands == kMostOperands || (operands >= kFewestOperands && chance(kCloseChance))) {
        put(kClose);
        const int value = stack[level].value;
        if (level == 0) return value;
        --level;
        take(value);
      } else if (level + 1 < depth_ && chance(kNestChance)) {
        open();
      } else {
        const int digit = static_cast<int>(draws_.below(kDigits));
        put(kDigit + digit);
        take(digit);
      }
    }
    return 0;
  }

  Draws& draws_;
  std::int64_t depth_;
  std::int32_t *tokens_, *targets_;
  std::int64_t time_, written_ = 0;
};

std::string word_of(std::int32_t token) {
  static constexpr const char* kAdjectiveWords[] = {"old", "red", "big", "shy"};
  static constexpr const char* kOperatorWords[] = {"max(", "min(", "sum("};
  // The first letter is the class: "ka ... kor" agree.
  static constexpr char kClassLetters[] = "klmt", kVowels[] = "aeio";
  if (token == kStop) return ".";
  if (token < 0 || token >= kVocabulary) return fmt::format("<{}>", token);
  if (token < kNoun) return kAdjectiveWords[token - kAdjective];
  if (token == kThat) return "that";
  if (token < kThat) {
    const bool noun = token < kVerb;
    const int i = token - (noun ? kNoun : kVerb);
    return fmt::format("{}{}{}", kClassLetters[i / kWords], kVowels[i % kWords], noun ? "" : "r");
  }
  if (token < kClose) return kOperatorWords[token - kOperator];
  if (token == kClose) return ")";
  return std::to_string(token - kDigit);
}

}  // namespace

Sentences::Sentences(const DataConfig& config, const BatchShape& shape)
    : GeneratedRows("sentences", shape, config.evaluation_batches),
      depth_(parameter("depth", config.depth, 4, 1, kDeepest)),
      optimum_(mean_entropy(depth_, shape.time)) {}

void Sentences::write_row(Draws& draws, std::int32_t* tokens, std::int32_t* targets) const {
  SentenceWriter(draws, depth_, tokens, targets, shape().time).run();
}

std::string Sentences::describe() const {
  return fmt::format(
      "sentences: {} tokens, nested at most {} deep; {:.4f} nats a token over this window, {:.4f} in the long run",
      kVocabulary, depth_, optimum_, entropy_rate(depth_));
}

std::string Sentences::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    if (!text.empty()) text += ' ';
    text += word_of(token);
  }
  return text;
}

}  // namespace norma
