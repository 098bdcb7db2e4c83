#include "data/unicode.h"

#include <algorithm>
#include <span>

namespace norma {
namespace {

struct CodeRange {
  char32_t first, last;
};

#include "data/unicode_ranges.inc"

bool lies_in(std::span<const CodeRange> ranges, char32_t c) {
  const auto behind =
      std::upper_bound(ranges.begin(), ranges.end(), c, [](char32_t x, const CodeRange& r) { return x < r.first; });
  return behind != ranges.begin() && c <= std::prev(behind)->last;
}

}  // namespace

bool is_letter(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return lies_in(kLetterRanges, c);
}

bool is_number(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return lies_in(kNumberRanges, c);
}

bool is_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace norma
