// A token is a word between white space, or the end of a line.
#include <algorithm>
#include <unordered_map>

#include "data/utf8.h"
#include "norma/core/error.h"
#include "norma/data/tokenizer.h"

namespace norma {
namespace {

constexpr std::int32_t kUnknown = 0, kEndOfLine = 1;
constexpr std::string_view kUnknownWord = "<unk>", kEndOfLineWord = "<eos>";

// Calls `word` for each word and `line` for each newline.
template <typename Word, typename Line>
void walk(std::string_view text, Word&& word, Line&& line) {
  constexpr std::string_view kSpace = " \t\r\v\f\n";
  for (std::size_t at = 0; (at = text.find_first_not_of(" \t\r\v\f", at)) != std::string_view::npos;) {
    if (text[at] == '\n') {
      line();
      ++at;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    word(text.substr(at, end - at));
    at = end;
  }
}

class WordTokenizer final : public Tokenizer {
 public:
  // `words` from id 2 on.
  explicit WordTokenizer(const std::vector<std::string_view>& words)
      : words_{std::string(kUnknownWord), std::string(kEndOfLineWord)} {
    words_.insert(words_.end(), words.begin(), words.end());
    for (std::size_t i = 0; i < words_.size(); ++i) ids_[words_[i]] = static_cast<std::int32_t>(i);
  }

  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(words_.size()); }

  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    walk(
        text,
        [&](std::string_view word) {
          const auto known = ids_.find(word);
          tokens.push_back(known == ids_.end() ? kUnknown : known->second);
        },
        [&] { tokens.push_back(kEndOfLine); });
  }

  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens) {
      if (token == kEndOfLine) {
        text += '\n';
        continue;
      }
      if (!text.empty() && text.back() != '\n') text += ' ';
      text += token >= 0 && token < vocabulary() ? words_[static_cast<std::size_t>(token)] : kReplacement;
    }
    return text;
  }

  std::string kind() const override { return "words"; }
  std::string stored() const override {  // without <unk> and <eos>; there is no end of line in a word
    std::string text;
    for (std::size_t i = 2; i < words_.size(); ++i) text += words_[i] + "\n";
    return text;
  }
  std::string describe() const override { return fmt::format("{} words", vocabulary()); }

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string_view, std::int32_t> ids_;  // into words_
};

}  // namespace

TokenizerPointer restore_words(std::string_view stored) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < stored.size();) {
    const std::size_t end = std::min(stored.find('\n', at), stored.size());
    words.push_back(stored.substr(at, end - at));
    at = end + 1;
  }
  return std::make_shared<WordTokenizer>(words);
}

TokenizerPointer word_tokenizer(std::string_view text, std::int64_t limit) {
  std::unordered_map<std::string_view, std::int64_t> counts;
  walk(
      text, [&](std::string_view word) { ++counts[word]; }, [] {});
  counts.erase(kUnknownWord);
  counts.erase(kEndOfLineWord);
  std::vector<std::string_view> words;
  for (const auto& [word, count] : counts) words.push_back(word);
  std::sort(words.begin(), words.end(), [&](std::string_view a, std::string_view b) {
    const std::int64_t count_a = counts.at(a), count_b = counts.at(b);
    return count_a != count_b ? count_a > count_b : a < b;
  });
  if (limit > 0) words.resize(std::min(words.size(), static_cast<std::size_t>(std::max<std::int64_t>(0, limit - 2))));
  return std::make_shared<WordTokenizer>(words);
}

}  // namespace norma
