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

std::string cell_text(const std::string& text, std::size_t width, bool left, bool last) {
  const std::string cut = cut_to(text, width);
  const std::string room(width - std::min(width, display_width(cut)), ' ');
  if (!left) return room + cut;
  return last ? cut : cut + room;
}

}  // namespace

std::string Table::text(std::optional<std::size_t> width) const {
  std::vector<std::size_t> widths, shown(columns_.size());
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    widths.push_back(display_width(columns_[column].title));
    for (const auto& row : rows_) widths[column] = std::max(widths[column], display_width(row[column]));
  }
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  if (width) {
    const std::vector<std::size_t> natural = widths;
    for (;;) {
      widths = natural;
      narrow(widths, shown, columns_, *width);
      if (total_of(widths, shown) <= *width) break;
      const auto dropped =
          std::find_if(shown.rbegin(), shown.rend(), [&](std::size_t column) { return columns_[column].optional; });
      if (dropped == shown.rend()) break;
      shown.erase(std::next(dropped).base());
    }
  }
  std::string text;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (const std::size_t column : shown) {
      if (column != shown.front()) line += std::string(kGap, ' ');
      line += cell_text(cell(column), widths[column], columns_[column].left, column == shown.back());
    }
    text += (width ? cut_to(line, *width) : line) + "\n";
  };
  add_line([&](std::size_t column) { return columns_[column].title; });
  for (const auto& row : rows_) add_line([&](std::size_t column) { return row[column]; });
  return text;
}

}  // namespace norma::cli
