// A table that fits: columns give up room, then themselves, before a line is wider than the terminal.
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
  explicit Table(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // In so many columns of the terminal; none: as wide as it is.
  std::string text(std::optional<std::size_t> width) const;

 private:
  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace norma::cli
