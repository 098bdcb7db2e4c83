// A token is a character: the code points of the training text, and <unk> for all others.
#include <algorithm>
#include <unordered_map>

#include "data/utf8.h"
#include "norma/core/error.h"
#include "norma/data/tokenizer.h"

namespace norma {
namespace {

class CharacterTokenizer final : public Tokenizer {
 public:
  explicit CharacterTokenizer(std::vector<char32_t> characters) : characters_(std::move(characters)) {
    for (std::size_t i = 0; i < characters_.size(); ++i) ids_[characters_[i]] = static_cast<std::int32_t>(i + 1);
  }

  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(characters_.size()) + 1; }

  // Bytes that are not UTF-8 are unknown characters, one each.
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = read_code_point(text, at);
      const auto known = c.bytes > 0 ? ids_.find(c.value) : ids_.end();
      tokens.push_back(known == ids_.end() ? 0 : known->second);
      at += static_cast<std::size_t>(std::max(1, c.bytes));
    }
  }

  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens) {
      if (token >= 1 && token < vocabulary()) {
        append_utf8(characters_[static_cast<std::size_t>(token - 1)], text);
      } else {
        text += kReplacement;
      }
    }
    return text;
  }

  std::string kind() const override { return "characters"; }
  std::string stored() const override {
    std::string text;
    for (const char32_t character : characters_) append_utf8(character, text);
    return text;
  }
  std::string describe() const override { return fmt::format("{} characters", vocabulary()); }

 private:
  std::vector<char32_t> characters_;
  std::unordered_map<char32_t, std::int32_t> ids_;
};

}  // namespace

TokenizerPointer restore_characters(std::string_view stored) {
  std::vector<char32_t> characters;
  for (std::size_t at = 0; at < stored.size();) {
    const CodePoint c = read_code_point(stored, at);
    if (c.bytes == 0) fail("the stored characters are not UTF-8");
    characters.push_back(c.value);
    at += static_cast<std::size_t>(c.bytes);
  }
  return std::make_shared<CharacterTokenizer>(std::move(characters));
}

TokenizerPointer character_tokenizer(std::string_view text, std::int64_t limit) {
  std::unordered_map<char32_t, std::int64_t> counts;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = read_code_point(text, at);
    if (c.bytes == 0) {
      fail("the text is not UTF-8: byte {} is 0x{:02x}; convert it, or use data.tokenizer = \"bytes\"", at,
           static_cast<unsigned char>(text[at]));
    }
    ++counts[c.value];
    at += static_cast<std::size_t>(c.bytes);
  }
  std::vector<char32_t> characters;
  for (const auto& [character, count] : counts) characters.push_back(character);
  if (limit > 0 && static_cast<std::int64_t>(characters.size()) > limit - 1) {
    std::sort(characters.begin(), characters.end(),
              [&](char32_t a, char32_t b) { return counts[a] != counts[b] ? counts[a] > counts[b] : a < b; });
    characters.resize(static_cast<std::size_t>(limit - 1));
  }
  std::sort(characters.begin(), characters.end());
  return std::make_shared<CharacterTokenizer>(std::move(characters));
}

}  // namespace norma
