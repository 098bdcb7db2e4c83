// Figures of results: what they show, the numbers behind them, and files of them. docs/figures.md lists them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "norma/lab/results.h"

namespace norma {

namespace draw {
struct Scene;
}

struct FigureTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows = {};
};

struct Figure {
  std::string id, title;
  std::string caption;  // what is shown, with units and intervals; stands alone
  FigureTable numbers;
  std::function<draw::Scene(double width)> draw;
};

// All that these results have, in the order of the report.
std::vector<Figure> figures_of(const Results& results);

// Throws Error that lists the figures there are.
const Figure& find_figure(const std::vector<Figure>& figures, std::string_view id);

enum class FigureWidth { page, column };  // 180 and 85 mm

// As the name ends: .svg, .pdf, .png or .csv. Written whole or not at all.
void write_figure(const std::filesystem::path& path, const Figure& figure, FigureWidth width);

}  // namespace norma
