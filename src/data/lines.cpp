#include "data/lines.h"

#include <algorithm>

#include "norma/core/random.h"

namespace norma {

std::vector<std::string_view> split_lines(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

std::vector<std::string_view> split_columns(std::string_view line) {
  std::vector<std::string_view> columns;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find('\t', at), line.size());
    columns.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return columns;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool held_out(std::string_view text, double fraction) {
  return RandomStream(0, hash_name(text), 0).uniform(0) < fraction;
}

bool by_number_then_text(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& text) {
    const bool whole = text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
    return whole && !text.empty() ? std::stol(text) : -1L;
  };
  return number(a) != number(b) ? number(a) < number(b) : a < b;
}

}  // namespace norma
