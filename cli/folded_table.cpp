#include "cli/folded_table.h"

#include <algorithm>

#include "cli/terminal.h"

namespace norma::cli {
namespace {

constexpr std::size_t kFoldGap = 2;

std::string laid_out(const std::string& text, std::size_t width, Align align) {
  const std::string cut = cut_to(text, width);
  const std::string space(width - display_width(cut), ' ');
  return align == Align::left ? cut + space : space + cut;
}

}  // namespace

void TextTable::column(std::string heading, Align align) { columns_.push_back({std::move(heading), align}); }
void TextTable::row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::size_t TextTable::width_of(std::size_t column) const {
  std::size_t width = display_width(columns_[column].heading);
  for (const std::vector<std::string>& row : rows_) width = std::max(width, display_width(row[column]));
  return width;
}

std::string TextTable::text() const {
  const std::size_t terminal = output_columns().value_or(std::string::npos);
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) widths.push_back(std::min(width_of(i), terminal));
  if (terminal != std::string::npos) widths[0] = std::min(widths[0], terminal / 2);
  std::string text;
  for (std::size_t next = 1; next < columns_.size();) {
    std::vector<std::size_t> shown = {0};
    std::size_t width = widths[0];
    for (; next < columns_.size() && (shown.size() == 1 || width + kFoldGap + widths[next] <= terminal); ++next) {
      if (terminal != std::string::npos) widths[next] = std::min(widths[next], terminal - widths[0] - kFoldGap);
      width += kFoldGap + widths[next];
      shown.push_back(next);
    }
    if (!text.empty()) text += '\n';
    text += group(shown, widths);
  }
  return text;
}

std::string TextTable::group(const std::vector<std::size_t>& columns, const std::vector<std::size_t>& widths) const {
  std::string text;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (const std::size_t column : columns)
      line += (line.empty() ? "" : std::string(kFoldGap, ' ')) +
              laid_out(cell(column), widths[column], columns_[column].align);
    while (line.ends_with(' ')) line.pop_back();
    text += line + "\n";
  };
  add_line([&](std::size_t column) { return columns_[column].heading; });
  for (const std::vector<std::string>& row : rows_) add_line([&](std::size_t column) { return row[column]; });
  return text;
}

}  // namespace norma::cli
