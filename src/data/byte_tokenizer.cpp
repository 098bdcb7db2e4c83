// A token is a byte.
#include "data/utf8.h"
#include "norma/data/tokenizer.h"

namespace norma {
namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  std::int64_t vocabulary() const override { return 256; }

  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  }

  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens) {
      if (token >= 0 && token < 256) {
        text += static_cast<char>(static_cast<unsigned char>(token));
      } else {
        text += kReplacement;
      }
    }
    return text;
  }

  std::string kind() const override { return "bytes"; }
  std::string describe() const override { return "bytes"; }
};

}  // namespace

TokenizerPointer byte_tokenizer() { return std::make_shared<ByteTokenizer>(); }

}  // namespace norma
