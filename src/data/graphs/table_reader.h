// Lines of a file and their words, with the place for errors.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>

#include "data/text_file.h"
#include "norma/core/error.h"

namespace norma {

class TableReader {
 public:
  static constexpr std::int64_t kMostNodes = 10'000'000;
  static constexpr std::int64_t kMostValues = std::int64_t{1} << 31;  // keeps a slip from filling memory

  // Packed files are unpacked. `between` are the characters between words.
  TableReader(const std::string& path, std::string_view what, std::string_view between = " \t")
      : file_(open_text_file(path, what)), rest_(file_->text()), between_(between) {}

  bool next() {
    if (rest_.empty()) return false;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line_ = rest_.substr(0, end);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    return true;
  }
  bool blank() const { return line_.find_first_not_of(between_) == std::string_view::npos; }

  std::string_view word() {
    line_.remove_prefix(std::min(line_.find_first_not_of(between_), line_.size()));
    const std::size_t end = std::min(line_.find_first_of(between_), line_.size());
    const std::string_view found = line_.substr(0, end);
    line_.remove_prefix(end);
    return found;
  }

  std::int64_t whole(const char* what, std::int64_t most, std::int64_t least = 0) {
    return whole_of(word(), what, most, least);
  }
  std::int64_t whole_of(std::string_view text, const char* what, std::int64_t most, std::int64_t least = 0) const {
    std::int64_t value = least - 1;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size() || value < least || value > most)
      wrong("{} is '{}'; expected a whole number from {} to {}", what, text, least, most);
    return value;
  }
  float number_of(std::string_view text, const char* what) const {
    double value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(static_cast<float>(value)))
      wrong("{} is '{}'; expected a number", what, text);
    return static_cast<float>(value);
  }
  void expect_end(const char* what) {
    if (const std::string_view more = word(); !more.empty()) wrong("'{}' is too much; expected {}", more, what);
  }

  template <typename... Arguments>
  [[noreturn]] void wrong(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    fail("'{}', line {}: {}", file_->path(), number_, fmt::format(format, std::forward<Arguments>(arguments)...));
  }

 private:
  std::shared_ptr<const TextFile> file_;
  std::string_view rest_, line_, between_;
  std::int64_t number_ = 0;
};

}  // namespace norma
