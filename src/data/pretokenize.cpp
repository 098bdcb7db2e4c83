#include "data/pretokenize.h"

#include <algorithm>

#include "data/unicode.h"
#include "data/utf8.h"

namespace norma {
namespace {

enum class Kind { letter, number, space, other };

struct Character {
  Kind kind;
  std::size_t end;
};

Character character_at(std::string_view text, std::size_t at) {
  const CodePoint c = read_code_point(text, at);
  if (c.bytes == 0) return {Kind::other, at + 1};
  const Kind kind = is_letter(c.value)   ? Kind::letter
                    : is_number(c.value) ? Kind::number
                    : is_space(c.value)  ? Kind::space
                                         : Kind::other;
  return {kind, at + static_cast<std::size_t>(c.bytes)};
}

// The length of a contraction such as 're at `at`, or 0.
std::size_t contraction(std::string_view text, std::size_t at) {
  for (const std::string_view suffix : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.substr(at, suffix.size()) == suffix) return suffix.size();
  }
  return 0;
}

std::size_t end_of_run(std::string_view text, std::size_t at, Kind kind) {
  while (at < text.size()) {
    const Character c = character_at(text, at);
    if (c.kind != kind) break;
    at = c.end;
  }
  return at;
}

}  // namespace

std::size_t end_of_piece(std::string_view text, std::size_t begin) {
  if (const std::size_t length = contraction(text, begin)) return begin + length;
  // One space may lead a run of letters, numbers or others.
  const std::size_t run = text[begin] == ' ' && begin + 1 < text.size() ? begin + 1 : begin;
  const Character first = character_at(text, run);
  if (first.kind != Kind::space) return end_of_run(text, first.end, first.kind);
  // White space: all of it at the end of the text, otherwise all but the last character, which belongs to what follows
  // (or stands alone when it is not a plain space).
  std::size_t last = begin, end = begin;
  while (end < text.size()) {
    const Character c = character_at(text, end);
    if (c.kind != Kind::space) break;
    last = end;
    end = c.end;
  }
  return end == text.size() || last == begin ? end : last;
}

}  // namespace norma
