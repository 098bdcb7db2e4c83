#include "norma/core/toml_text.h"

#include <algorithm>
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

}  // namespace

void require_ascii_outside_strings(std::string_view toml, std::string_view origin) {
  if (toml.starts_with("\xef\xbb\xbf")) toml.remove_prefix(3);  // a byte-order mark
  std::size_t i = 0;
  while (i < toml.size()) {
    const char c = toml[i];
    if (c == '"' || c == '\'') {
      i = end_of_string(toml, i);
    } else if (c == '#') {
      i = std::min(toml.find('\n', i), toml.size());
    } else if (static_cast<unsigned char>(c) < 0x80) {
      ++i;
    } else {
      fail("{}, line {}: there is a letter beyond ASCII outside strings and comments; expected it in quotes", origin,
           1 + std::count(toml.begin(), toml.begin() + static_cast<std::ptrdiff_t>(i), '\n'));
    }
  }
}

}  // namespace norma
