// Tables as people read them on a terminal: where one is too wide, its columns stand below each other in groups, each
// with the first column again.
#pragma once

#include <string>
#include <vector>

namespace norma::cli {

enum class Align { left, right };

class TextTable {
 public:
  void column(std::string heading, Align align = Align::right);
  void row(std::vector<std::string> cells);
  // One line for the headings and one for each row, no wider than the terminal; any width where there is none.
  std::string text() const;

 private:
  struct Column {
    std::string heading;
    Align align;
  };
  std::size_t width_of(std::size_t column) const;
  std::string group(const std::vector<std::size_t>& columns, const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace norma::cli
