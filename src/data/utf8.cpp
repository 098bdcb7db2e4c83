#include "data/utf8.h"

namespace norma {

CodePoint read_code_point(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const int bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() - at < static_cast<std::size_t>(bytes)) return {};
  char32_t value = first & (0xFFu >> (bytes + 1));
  for (int i = 1; i < bytes; ++i) {
    const unsigned char next = byte(static_cast<std::size_t>(i));
    if ((next & 0xC0) != 0x80) return {};
    value = (value << 6) | (next & 0x3Fu);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[bytes] || value > 0x10FFFF || surrogate) return {};
  return {value, bytes};
}

void append_utf8(char32_t value, std::string& text) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  const auto put_rest = [&](int shift) { put(0x80 | ((value >> shift) & 0x3F)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | (value >> 6));
    put_rest(0);
  } else if (value < 0x10000) {
    put(0xE0 | (value >> 12));
    put_rest(6);
    put_rest(0);
  } else {
    put(0xF0 | (value >> 18));
    put_rest(12);
    put_rest(6);
    put_rest(0);
  }
}

}  // namespace norma
