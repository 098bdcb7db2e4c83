#include "report/figures/csv.h"

#include <cstdlib>

namespace norma {
namespace {

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

std::string cell(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xc2\xa0");
  const bool formula = first != std::string::npos &&
                       std::string_view("=+-@").find(text[first]) != std::string_view::npos && !is_number(text);
  const std::string safe = formula ? "'" + text : text;
  if (safe.find_first_of("\",\r\n") == std::string::npos) return safe;
  std::string quoted = "\"";
  for (const char c : safe) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

void append_row(std::string& out, const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) out += (i > 0 ? "," : "") + cell(cells[i]);
  out += "\r\n";
}

}  // namespace

std::string csv_text(const FigureTable& table) {
  std::string out;
  append_row(out, table.columns);
  for (const std::vector<std::string>& row : table.rows) append_row(out, row);
  return out;
}

}  // namespace norma
