#include "norma/core/printable.h"

#include <fmt/format.h>

namespace norma {
namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: these bytes are no UTF-8
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (bytes == 0 || lead > 0xf4 || text.size() < bytes) return {};
  char32_t code = lead & (0xff >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // anything less has a shorter spelling
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, bytes};
}

bool is_obeyed(char32_t code) {
  if (code < 0x20) return code != '\n' && code != '\t';
  return (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

// `spell` gives the replacement of a character that a terminal would obey, or of a byte that is none.
template <typename Spell>
std::string replaced(std::string_view text, Spell spell) {
  std::string result;
  while (!text.empty()) {
    const Character next = first_character(text);
    const std::size_t bytes = next.bytes == 0 ? 1 : next.bytes;
    if (next.bytes == 0) {
      result += spell(static_cast<unsigned char>(text[0]), false);
    } else if (is_obeyed(next.code)) {
      result += spell(next.code, true);
    } else {
      result += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) {
  return replaced(text, [](char32_t code, bool valid) {
    return valid && code > 0x7f ? fmt::format("\\u{:04x}", static_cast<unsigned>(code))
                                : fmt::format("\\x{:02x}", static_cast<unsigned>(code));
  });
}

std::string printable_json(std::string_view json) {
  return replaced(json, [](char32_t code, bool valid) {
    return fmt::format("\\u{:04x}", valid ? static_cast<unsigned>(code) : 0xfffdu);
  });
}

}  // namespace norma
