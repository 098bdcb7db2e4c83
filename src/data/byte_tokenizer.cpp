#include "data/byte_tokenizer.h"

namespace norma {

Tokenizer::~Tokenizer() = default;

void ByteTokenizer::encode(std::string_view text, std::vector<std::int32_t>& tokens) const {
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < 256) {
      text += static_cast<char>(token);
    } else {
      text += "\uFFFD";
    }
  }
  return text;
}

}  // namespace norma
