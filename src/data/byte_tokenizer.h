// A token is a byte.
#pragma once

#include "norma/data/tokenizer.h"

namespace norma {

class ByteTokenizer final : public Tokenizer {
 public:
  std::int64_t vocabulary() const override { return 256; }
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;
  std::string describe() const override { return "bytes"; }
};

}  // namespace norma
