// Panels of lines: means with bands, theory broken, names at the ends of lines, divergences as crosses.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "norma/report/figure.h"
#include "report/figures/scene.h"

namespace norma::draw {

struct Line {
  std::string label;
  int scheme = kNoScheme;
  Tone tone = Tone::rest;
  std::vector<double> x, y;                 // values that are not finite are gaps
  std::vector<double> low = {}, high = {};  // the band; empty: none
  std::vector<double> theory = {};          // at the same x; empty: none
  std::vector<std::string> tips = {};       // what is said of each point; empty: none can be pointed at
  std::vector<double> crosses = {};         // x of what diverged, marked at the top
  int marker = -1;                          // -1: none
  double dash = 0;
  bool background = false;  // one that others are compared with: faint, without a name
};

struct Rule {
  double y = 0;
  std::string label;
};

struct Panel {
  std::string title = {};
  int scheme = kNoScheme;  // that the panel is about
  Tone tone = Tone::ink;   // of the title
  std::string x_label, y_label;
  bool x_log = false, y_log = false;
  double y_most = std::numeric_limits<double>::infinity();  // the axis ends there; what lies beyond is drawn at its end
  std::vector<double> x_ticks = {};                         // empty: chosen
  std::vector<Rule> rules = {};
  std::vector<Line> lines = {};
  bool names = true;  // at the ends of lines
};

enum class Axes {
  own,     // of each panel
  shared,  // by all panels: tick labels only at the left and below
};

struct Grid {
  int columns = 1;
  double height = 220;  // of a panel's plot
  Axes axes = Axes::own;
};

Scene draw_panels(const std::vector<Panel>& panels, const Grid& grid, double width);

// One row for each point: panel, series, x, y, low, high, theory.
FigureTable numbers_of(const std::vector<Panel>& panels);
std::string exact(double value);  // shortest text that reads back as the same number

}  // namespace norma::draw
