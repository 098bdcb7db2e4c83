// Rows with a dot and its interval on one axis, each with its value in digits and, where there is one, a small map.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "norma/lab/estimate.h"
#include "norma/report/figure.h"
#include "report/figures/heat.h"
#include "report/figures/scene.h"

namespace norma::draw {

struct DotRow {
  std::string label;
  int scheme = kNoScheme;
  Tone tone = Tone::rest;
  int marker = 0;
  Estimate value = {};      // n = 0: there is none, and the note says why
  std::string digits = {};  // the value as text
  std::string note = {};
  std::string tip = {};
  bool far = false;  // beyond what the axis is to resolve: at its end
  std::optional<Heat> map = {};
};

struct DotRule {
  double x = 0;
  std::string label;
};

struct Dots {
  std::vector<DotRow> rows;
  std::string x_label;
  std::vector<DotRule> rules = {};           // in order; where one is far from all dots, the axis is broken before it
  std::optional<double> from = {}, to = {};  // ends of the axis; none: as the values need
  bool log = false;
  HeatKey key = {};  // of the maps
};

Scene draw_dots(const Dots& dots, double width);
FigureTable numbers_of(const Dots& dots);

// Puts a drawing into another.
void put(Scene& into, const Scene& part, double x, double y);

}  // namespace norma::draw
