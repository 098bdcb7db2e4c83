#include "norma/core/toml_text.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "norma/core/error.h"

namespace norma {
namespace {

// The end of the string that opens at `begin`: behind its closing quotes, or where a line or the text ends it.
std::size_t end_of_string(std::string_view toml, std::size_t begin) {
  const char quote = toml[begin];
  const std::string three(3, quote);
  const bool long_string = toml.substr(begin, 3) == three;
  for (std::size_t i = begin + (long_string ? 3 : 1); i < toml.size(); ++i) {
    if (toml[i] == '\\' && quote == '"') {
      ++i;
    } else if (toml[i] == '\n' && !long_string) {
      return i;
    } else if (long_string ? toml.substr(i, 3) == three : toml[i] == quote) {
      return i + (long_string ? 3 : 1);
    }
  }
  return toml.size();
}

// Whether `[name]` or `[[name]]` begins with a name, or with what the parser itself refuses.
bool names_a_table(std::string_view header) {
  const auto skip = [&](std::size_t from) { return std::min(header.find_first_not_of(" \t", from), header.size()); };
  std::size_t i = skip(1);
  if (i < header.size() && header[i] == '[') i = skip(i + 1);
  if (i == header.size()) return true;
  const char c = header[i];
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-\"']").find(c) != std::string_view::npos;
}

}  // namespace

void check_toml_text(std::string_view toml, std::string_view origin) {
  if (toml.starts_with("\xef\xbb\xbf")) toml.remove_prefix(3);  // a byte-order mark
  const auto refuse = [&](std::size_t at, std::string_view why) {
    fail("{}, line {}: {}", origin, 1 + std::count(toml.begin(), toml.begin() + static_cast<std::ptrdiff_t>(at), '\n'),
         why);
  };
  int depth = 0;  // of brackets in a value
  bool line_begins = true, header = false;
  for (std::size_t i = 0; i < toml.size();) {
    const char c = toml[i];
    if (line_begins && depth == 0 && c == '[') {
      if (!names_a_table(toml.substr(i)))
        refuse(i, "a table needs a name of letters, digits, '_' and '-' behind '[', or one in quotes");
      header = true;
    }
    if (c == '\n') header = false;
    line_begins = c == '\n' || (line_begins && (c == ' ' || c == '\t'));
    if (c == '"' || c == '\'') {
      i = end_of_string(toml, i);
      continue;
    }
    if (c == '#') {
      i = std::min(toml.find('\n', i), toml.size());
      continue;
    }
    if (static_cast<unsigned char>(c) >= 0x80)
      refuse(i, "there is a letter beyond ASCII outside strings and comments; expected it in quotes");
    if (!header && (c == '[' || c == '{')) ++depth;
    if (!header && (c == ']' || c == '}')) depth = std::max(0, depth - 1);
    ++i;
  }
}

}  // namespace norma
