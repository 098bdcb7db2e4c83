#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace norma::cli {
namespace {

constexpr std::size_t kNarrowest = 20;  // anything less is a slip, or no terminal at all

std::optional<std::size_t> columns_of(int stream) {
  if (const char* given = std::getenv("COLUMNS")) {
    std::size_t columns = 0;
    const std::string_view text = given;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (error == std::errc() && end == text.data() + text.size() && columns >= kNarrowest) return columns;
  }
  winsize size{};
  if (isatty(stream) == 0 || ioctl(stream, TIOCGWINSZ, &size) != 0 || size.ws_col < kNarrowest) return std::nullopt;
  return size.ws_col;
}

bool begins_character(char c) { return (c & 0xC0) != 0x80; }

// Bytes of the first `columns` characters.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (begins_character(text[at]) && columns-- == 0) break;
  }
  return at;
}

// How much of `line` fits into `columns`: up to a space between words where there is one, never before `least`.
std::size_t break_of(std::string_view line, std::size_t columns, std::size_t least) {
  const std::size_t fits = bytes_of(line, columns);
  if (line[fits] == ' ') return fits;
  const std::size_t space = line.rfind(' ', fits);
  return space == std::string_view::npos || space <= least ? fits : space;
}

void append_wrapped(std::string_view line, std::size_t columns, std::size_t hang, std::string& to) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t further = std::min(indent + hang, columns / 2);
  for (std::size_t begin = 0;;) {
    if (display_width(line) <= columns) break;
    const std::size_t end = break_of(line, columns, begin == 0 ? indent : further);
    to += line.substr(0, end);
    while (!to.empty() && to.back() == ' ') to.pop_back();
    to += '\n';
    line.remove_prefix(end);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty()) return;
    to += std::string(further, ' ');
    columns -= begin == 0 ? further : 0;
    begin = 1;
  }
  to += line;
}

}  // namespace

std::optional<std::size_t> output_columns() { return columns_of(STDOUT_FILENO); }
std::optional<std::size_t> error_columns() { return columns_of(STDERR_FILENO); }

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string cut_to(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  return std::string(text.substr(0, bytes_of(text, columns - 1))) + "\u2026";
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t hang) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    append_wrapped(text.substr(at, end - at), columns, hang, result);
    if (end < text.size()) result += '\n';
    at = end + 1;
  }
  return result;
}

}  // namespace norma::cli
