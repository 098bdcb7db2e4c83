// Text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace norma {

// Tokens that frame sequences. -1: the tokenizer has none.
struct SpecialTokens {
  std::int32_t padding = -1, beginning = -1, end = -1, unknown = -1, mask = -1, separator = -1;
};

class Tokenizer {
 public:
  virtual ~Tokenizer();

  virtual std::int64_t vocabulary() const = 0;
  // Appends the tokens of `text`.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& tokens) const = 0;
  // Unknown ids are written as the replacement character; never throws on any ids.
  virtual std::string decode(std::span<const std::int32_t> tokens) const = 0;
  virtual SpecialTokens special() const { return {}; }
  virtual std::string describe() const = 0;
};

}  // namespace norma
