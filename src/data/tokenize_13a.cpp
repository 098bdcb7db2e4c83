// The tokenisation of mteval-v13a: punctuation stands apart, but periods and commas stay inside numbers. The four rules
// run one after another over the whole line, each from left to right over what the one before left.
#include <string>

#include "data/unicode.h"
#include "data/utf8.h"
#include "norma/data/bleu.h"

namespace norma {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

// { to ~, [ to `, space to &, ( to +, : to @, and /.
bool is_punctuation(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
         (c >= ':' && c <= '@') || c == '/';
}

std::string part_punctuation(const std::string& text) {
  std::string parted;
  for (const char c : text) {
    if (is_punctuation(c)) {
      parted += {' ', c, ' '};
    } else {
      parted += c;
    }
  }
  return parted;
}

// Rewrites each pair of neighbours that `matches`, as " a b" or "a b " by what `space` marks. A pair is consumed whole.
enum class Space { around_first, around_second };
template <typename Matches>
std::string part_pairs(const std::string& text, Space space, Matches&& matches) {
  std::string parted;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !matches(text[i], text[i + 1])) {
      parted += text[i];
      continue;
    }
    if (space == Space::around_first) {
      parted += {' ', text[i], ' ', text[i + 1]};
    } else {
      parted += {text[i], ' ', text[i + 1], ' '};
    }
    ++i;
  }
  return parted;
}

// One space between words, whatever white space was there.
std::string join_words(const std::string& text) {
  std::string joined;
  bool pending = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = read_code_point(text, at);
    const std::size_t bytes = static_cast<std::size_t>(c.bytes > 0 ? c.bytes : 1);
    const bool separator = c.bytes > 0 && c.value >= 0x1C && c.value <= 0x1F;
    if (c.bytes > 0 && (is_space(c.value) || separator)) {
      pending = !joined.empty();
    } else {
      if (pending) joined += ' ';
      pending = false;
      joined.append(text, at, bytes);
    }
    at += bytes;
  }
  return joined;
}

}  // namespace

std::string tokenize_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  text = part_punctuation(" " + text + " ");
  text = part_pairs(text, Space::around_second, [](char a, char b) { return !is_digit(a) && is_point(b); });
  text = part_pairs(text, Space::around_first, [](char a, char b) { return is_point(a) && !is_digit(b); });
  text = part_pairs(text, Space::around_second, [](char a, char b) { return is_digit(a) && b == '-'; });
  return join_words(text);
}

}  // namespace norma
