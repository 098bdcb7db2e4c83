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

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A letter of a bare key or of a value that is no string.
bool is_bare(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-+.:").find(c) != std::string_view::npos;
}

// Reads a value that is no string from its left end, part by part.
class Scalar {
 public:
  explicit Scalar(std::string_view text) : rest_(text) {}

  bool all_read() const { return rest_.empty(); }

  bool word(std::string_view expected) {
    const bool here = rest_.starts_with(expected);
    if (here) rest_.remove_prefix(expected.size());
    return here;
  }

  bool one_of(std::string_view letters) {
    const bool here = !rest_.empty() && letters.find(rest_.front()) != std::string_view::npos;
    if (here) rest_.remove_prefix(1);
    return here;
  }

  // Digits of a number, an underscore between two of them allowed.
  bool digits(std::string_view of = "0123456789") {
    if (!one_of(of)) return false;
    while (one_of(of) ||
           (rest_.size() > 1 && rest_[0] == '_' && of.find(rest_[1]) != std::string_view::npos && word("_")))
      ;
    return true;
  }

  // So many digits of a date or a time.
  bool exactly(std::size_t count) {
    if (rest_.size() < count ||
        !std::all_of(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(count), is_digit))
      return false;
    rest_.remove_prefix(count);
    return true;
  }

  bool date() { return exactly(4) && word("-") && exactly(2) && word("-") && exactly(2); }

  bool time() {
    if (!exactly(2) || !word(":") || !exactly(2) || !word(":") || !exactly(2)) return false;
    if (!word(".")) return true;
    if (!exactly(1)) return false;
    while (exactly(1))
      ;
    return true;
  }

  bool offset() { return one_of("zZ") || !one_of("+-") || (exactly(2) && word(":") && exactly(2)); }

  // A float may begin with its dot, which TOML does not allow and the parser does.
  bool number() {
    one_of("+-");
    if (word("inf") || word("nan")) return true;
    if (!digits() && !rest_.starts_with(".")) return false;
    if (word(".") && !digits()) return false;
    if (!one_of("eE")) return true;
    one_of("+-");
    return digits();
  }

 private:
  std::string_view rest_;
};

bool is_date(std::string_view text) {
  Scalar scalar(text);
  return scalar.date() && scalar.all_read();
}

bool is_time(std::string_view text) {
  Scalar scalar(text);
  return scalar.time() && scalar.offset() && scalar.all_read();
}

bool is_value(std::string_view text) {
  if (text == "true" || text == "false" || is_date(text)) return true;
  Scalar local(text), moment(text), number(text), coded(text);
  if (local.time() && local.all_read()) return true;
  if (moment.date() && moment.one_of("tT") && moment.time() && moment.offset() && moment.all_read()) return true;
  if (coded.word("0x")) return coded.digits("0123456789abcdefABCDEF") && coded.all_read();
  if (coded.word("0o")) return coded.digits("01234567") && coded.all_read();
  if (coded.word("0b")) return coded.digits("01") && coded.all_read();
  return number.number() && number.all_read();
}

// Follows where keys, values and brackets stand, and reads what is no string.
class TomlCheck {
 public:
  TomlCheck(std::string_view toml, std::string_view origin) : toml_(toml), origin_(origin) {}

  void run() {
    bool line_begins = true;
    for (std::size_t i = 0; i < toml_.size();) {
      const char c = toml_[i];
      if (line_begins && open_.empty() && c == '[') {
        if (!names_a_table(toml_.substr(i)))
          refuse(i, "a table needs a name of letters, digits, '_' and '-' behind '[', or one in quotes");
        at_ = At::header;
      }
      line_begins = c == '\n' || (line_begins && (c == ' ' || c == '\t'));
      if (c == '"' || c == '\'') {
        i = check_string(i);
      } else if (c == '#') {
        i = std::min(toml_.find('\n', i), toml_.size());
      } else if (is_bare(c)) {
        i = check_bare(i);
      } else {
        check_sign(i++);
      }
    }
  }

 private:
  enum class At { key, value, behind_value, header };

  [[noreturn]] void refuse(std::size_t at, std::string_view why) const {
    const std::string_view before = toml_.substr(0, at);
    const std::size_t begin_of_line = before.rfind('\n') + 1;  // 0 where there is none before
    fail("{}, line {}, column {}: {}", origin_, 1 + std::ranges::count(before, '\n'), 1 + at - begin_of_line, why);
  }

  // A string begins a key, a part of one, or a value.
  std::size_t check_string(std::size_t i) {
    constexpr std::string_view kBefore = "=,.[{ \t\r\n";
    if (at_ == At::behind_value || (i > 0 && kBefore.find(toml_[i - 1]) == std::string_view::npos))
      refuse(i, "a string begins where something else has not ended");
    if (at_ == At::value) at_ = At::behind_value;
    return end_of_string(toml_, i);
  }

  std::size_t check_bare(std::size_t begin) {
    std::size_t end = begin;
    while (end < toml_.size() && is_bare(toml_[end])) ++end;
    const std::string_view text = toml_.substr(begin, end - begin);
    if (at_ == At::key || at_ == At::header) {
      check_key(begin, text);
    } else if (at_ == At::value) {
      if (!is_value(text))
        refuse(begin,
               fmt::format("'{}' is no value; expected a number, true, false, a date, or a text in quotes", text));
      at_ = At::behind_value;
      date_ends_ = is_date(text) ? end : std::string_view::npos;
    } else if (begin != date_ends_ + 1 || toml_[date_ends_] != ' ' || !is_time(text)) {
      refuse(begin, fmt::format("there is a '{}' behind a value; expected a text in quotes, or a comma", text));
    }
    return end;
  }

  void check_key(std::size_t begin, std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '+' || text[i] == ':')
        refuse(begin + i, fmt::format("there is a '{}' in a key; expected it in quotes", text[i]));
      if (text[i] == '.' && ++dots_ == kDeepestToml)
        refuse(begin + i, fmt::format("a key of more than {} parts", kDeepestToml));
    }
  }

  // What is neither a string nor part of a key or value.
  void check_sign(std::size_t i) {
    const char c = toml_[i];
    if (c == ' ' || c == '\t' || c == '\r') return;
    if (static_cast<unsigned char>(c) >= 0x80)
      refuse(i, "there is a letter beyond ASCII outside strings and comments; expected it in quotes");
    if (std::string_view("=,[]{}\n").find(c) == std::string_view::npos)
      refuse(i, fmt::format("there is a '{}' outside strings and comments; expected it in quotes", c));
    dots_ = 0;
    if (c == '\n') {
      if (open_.empty()) at_ = At::key;
    } else if (at_ == At::header) {
      if (c != '[' && c != ']') refuse(i, fmt::format("there is a '{}' in the name of a table", c));
    } else if (c == '=') {
      if (at_ != At::key) refuse(i, "there is a '=' where a value is expected or has ended");
      at_ = At::value;
    } else if (c == ',') {
      if (open_.empty()) refuse(i, "there is a ',' outside brackets");
      at_ = open_.back() == '[' ? At::value : At::key;
    } else if (c == '[' || c == '{') {
      if (at_ != At::value) refuse(i, fmt::format("there is a '{}' where no value is expected", c));
      open_ += c;
      if (open_.size() > kDeepestToml) refuse(i, fmt::format("brackets nested more than {} deep", kDeepestToml));
      at_ = c == '[' ? At::value : At::key;
    } else {
      if (open_.empty() || open_.back() != (c == ']' ? '[' : '{'))
        refuse(i, fmt::format("there is a '{}' that closes nothing", c));
      open_.pop_back();
      at_ = At::behind_value;
    }
  }

  std::string_view toml_, origin_;
  At at_ = At::key;
  std::string open_;                                // brackets of a value
  std::size_t dots_ = 0;                            // of a key
  std::size_t date_ends_ = std::string_view::npos;  // of the value last read, where it is a date: a time may follow
};

}  // namespace

void check_toml_text(std::string_view toml, std::string_view origin) {
  if (toml.starts_with("\xef\xbb\xbf")) toml.remove_prefix(3);  // a byte-order mark
  TomlCheck(toml, origin).run();
}

}  // namespace norma
