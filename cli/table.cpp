#include "cli/table.h"

#include <algorithm>
#include <numeric>

#include "cli/terminal.h"

namespace norma::cli {
namespace {

constexpr std::size_t kGap = 2, kNarrowestText = 14;

std::size_t total_of(const std::vector<std::size_t>& widths, const std::vector<std::size_t>& shown) {
  std::size_t total = shown.empty() ? 0 : kGap * (shown.size() - 1);
  for (const std::size_t column : shown) total += widths[column];
  return total;
}

// Takes room from the widest texts until it fits or none has any left.
void narrow(std::vector<std::size_t>& widths, const std::vector<std::size_t>& shown,
            const std::vector<TableColumn>& columns, std::size_t width) {
  while (total_of(widths, shown) > width) {
    std::size_t widest = columns.size();
    for (const std::size_t column : shown) {
      if (!columns[column].left || widths[column] <= kNarrowestText) continue;
      if (widest == columns.size() || widths[column] > widths[widest]) widest = column;
    }
    if (widest == columns.size()) return;
    --widths[widest];
  }
}

std::string cell_text(const std::string& text, std::size_t width, bool left) {
  const std::string cut = cut_to(text, width);
  const std::string room(width - std::min(width, display_width(cut)), ' ');
  return left ? cut + room : room + cut;
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) {
    for (std::size_t at = 0; (at = cell.find_first_of("\n\t", at)) != std::string::npos; at += 4)
      cell.replace(at, 1, cell[at] == '\n' ? "\\x0a" : "\\x09");
  }
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::natural_widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    widths.push_back(display_width(columns_[column].title));
    for (const auto& row : rows_) widths[column] = std::max(widths[column], display_width(row[column]));
  }
  return widths;
}

std::string Table::lines(const std::vector<std::size_t>& shown, const std::vector<std::size_t>& widths) const {
  std::string text;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (const std::size_t column : shown) {
      if (column != shown.front()) line += std::string(kGap, ' ');
      line += cell_text(cell(column), widths[column], columns_[column].left);
    }
    while (line.ends_with(' ')) line.pop_back();
    text += line + "\n";
  };
  add_line([&](std::size_t column) { return columns_[column].title; });
  for (const auto& row : rows_) add_line([&](std::size_t column) { return row[column]; });
  return text;
}

std::string Table::text(std::optional<std::size_t> width) const {
  const std::vector<std::size_t> natural = natural_widths();
  std::vector<std::size_t> widths = natural, shown(columns_.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  if (!width) return lines(shown, widths);
  for (;;) {
    widths = natural;
    narrow(widths, shown, columns_, *width);
    if (total_of(widths, shown) <= *width) return lines(shown, widths);
    const auto dropped =
        std::find_if(shown.rbegin(), shown.rend(), [&](std::size_t column) { return columns_[column].optional; });
    if (dropped == shown.rend()) break;
    shown.erase(std::next(dropped).base());
  }
  std::string text;  // too narrow for what must be there
  const std::string whole = lines(shown, widths);
  for (std::size_t at = 0; at < whole.size();) {
    const std::size_t end = whole.find('\n', at);
    text += cut_to(whole.substr(at, end - at), *width) + "\n";
    at = end + 1;
  }
  return text;
}

std::string Table::folded(std::optional<std::size_t> width) const {
  std::vector<std::size_t> widths = natural_widths();
  if (width) {
    for (std::size_t& one : widths) one = std::min(one, *width);
    widths[0] = std::min(widths[0], *width / 2);
  }
  std::string text;
  for (std::size_t next = 1; next < columns_.size();) {
    std::vector<std::size_t> shown = {0};
    do {
      if (width) widths[next] = std::min(widths[next], *width - widths[0] - kGap);
      shown.push_back(next++);
    } while (next < columns_.size() && (!width || total_of(widths, shown) + kGap + widths[next] <= *width));
    text += (text.empty() ? "" : "\n") + lines(shown, widths);
  }
  return text;
}

}  // namespace norma::cli
