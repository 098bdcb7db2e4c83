// UTF-8, strictly: no overlong forms, no surrogates, nothing beyond U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace norma {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct CodePoint {
  char32_t value = 0;
  int bytes = 0;  // 0: the bytes are not UTF-8
};

// The code point at `at`, which must lie inside the text.
CodePoint read_code_point(std::string_view text, std::size_t at);

void append_utf8(char32_t value, std::string& text);

}  // namespace norma
