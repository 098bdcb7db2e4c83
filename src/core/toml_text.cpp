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
      if (!long_string) return i + 1;
      i += 3;
      for (int own = 0; own < 2 && i < toml.size() && toml[i] == quote; ++own) ++i;  // its last letters may be quotes
      return i;
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

// Whether a character may stand outside strings and comments.
bool is_toml(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-+.:=,[]{} \t\r\n").find(c) != std::string_view::npos;
}

class TomlCheck {
 public:
  TomlCheck(std::string_view toml, std::string_view origin) : toml_(toml), origin_(origin) {}

  void run() {
    for (std::size_t i = 0; i < toml_.size();) {
      const char c = toml_[i];
      if (line_begins_ && open_.empty() && c == '[') {
        if (!names_a_table(toml_.substr(i)))
          refuse(i, "a table needs a name of letters, digits, '_' and '-' behind '[', or one in quotes");
        header_ = true;
      }
      if (c == '\n') header_ = false;
      line_begins_ = c == '\n' || (line_begins_ && (c == ' ' || c == '\t'));
      if (c == '"' || c == '\'') {
        check_opening_quote(i);
        i = end_of_string(toml_, i);
      } else if (c == '#') {
        i = std::min(toml_.find('\n', i), toml_.size());
      } else {
        check(i++);
      }
    }
  }

 private:
  [[noreturn]] void refuse(std::size_t at, std::string_view why) const {
    const auto end = toml_.begin() + static_cast<std::ptrdiff_t>(at);
    fail("{}, line {}: {}", origin_, 1 + std::count(toml_.begin(), end, '\n'), why);
  }

  // A string begins a key, a part of one, or a value.
  void check_opening_quote(std::size_t i) const {
    constexpr std::string_view kBefore = "=,.[{ \t\r\n";
    if (i > 0 && kBefore.find(toml_[i - 1]) == std::string_view::npos)
      refuse(i, "a string begins where something else has not ended");
  }

  void check(std::size_t i) {
    const char c = toml_[i];
    if (static_cast<unsigned char>(c) >= 0x80)
      refuse(i, "there is a letter beyond ASCII outside strings and comments; expected it in quotes");
    if (!is_toml(c)) refuse(i, fmt::format("there is a '{}' outside strings and comments; expected it in quotes", c));
    if (c == '.') {
      if (++dots_ == kDeepestToml) refuse(i, fmt::format("a key of more than {} parts", kDeepestToml));
    } else if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) {
      dots_ = 0;
    }
    if (header_) return;
    if (c == '[' || c == '{') {
      open_ += c;
      if (open_.size() > kDeepestToml) refuse(i, fmt::format("brackets nested more than {} deep", kDeepestToml));
    } else if (c == ']' || c == '}') {
      if (open_.empty() || open_.back() != (c == ']' ? '[' : '{'))
        refuse(i, fmt::format("there is a '{}' that closes nothing", c));
      open_.pop_back();
    }
  }

  std::string_view toml_, origin_;
  std::string open_;      // brackets of a value
  std::size_t dots_ = 0;  // of a key
  bool line_begins_ = true, header_ = false;
};

}  // namespace

void check_toml_text(std::string_view toml, std::string_view origin) {
  if (toml.starts_with("\xef\xbb\xbf")) toml.remove_prefix(3);  // a byte-order mark
  TomlCheck(toml, origin).run();
}

}  // namespace norma
