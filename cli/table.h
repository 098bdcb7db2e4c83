// Tables that fit a terminal, in one of two ways: columns give up room, then themselves; or they stand below each other
// in groups.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace norma::cli {

struct TableColumn {
  std::string title;
  bool left = false;      // text: set to the left, and cut where room is short
  bool optional = false;  // left out where even that does not help, the last one first
};

class Table {
 public:
  Table() = default;
  explicit Table(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}

  void column(TableColumn column) { columns_.push_back(std::move(column)); }
  void add(std::vector<std::string> row);  // a cell is one line: what would end it is spelled out

  // In so many columns of the terminal; none: as wide as it is. Texts are cut, and optional columns left out.
  std::string text(std::optional<std::size_t> width) const;
  // Nothing is left out: where it is too wide, groups of columns follow each other, each with the first column again.
  std::string folded(std::optional<std::size_t> width) const;

 private:
  std::vector<std::size_t> natural_widths() const;
  // Headings and rows; lines end with their last letter.
  std::string lines(const std::vector<std::size_t>& shown, const std::vector<std::size_t>& widths) const;

  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace norma::cli
