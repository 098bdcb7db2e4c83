// Names beside the ends of lines, moved apart where they would cover one another.
#pragma once

#include <string>
#include <vector>

#include "report/figures/scene.h"

namespace norma::draw {

// A line that ends so far before its name is led to it by dots.
inline constexpr double kFarName = 40;

struct Label {
  Point from;  // the end of the line
  std::string text;
  Tone tone = Tone::rest;
  int scheme = kNoScheme;
};

struct LabelColumn {
  double x = 0, top = 0, bottom = 0, room = 0, size = 10.5;
};

// Where there are more names than room, those of the rest give way.
void place_labels(Scene& scene, std::vector<Label> labels, const LabelColumn& column);

}  // namespace norma::draw
