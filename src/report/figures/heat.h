// Small maps of cells on the colour ramp; what diverged is hatched.
#pragma once

#include <string>
#include <vector>

#include "report/figures/scene.h"

namespace norma::draw {

struct HeatCell {
  double level = 0;     // 0 strong, 1 nearly paper; NaN: nothing is known
  double diverged = 0;  // share
  bool best = false;
  std::string tip = {};
};

struct Heat {
  std::string title;
  int scheme = kNoScheme;
  Tone tone = Tone::ink;
  std::vector<std::string> x, y;  // names of columns and rows; rows from below
  std::vector<std::vector<HeatCell>> cells;
};

// What the ends of the ramp mean, and the two axes.
struct HeatKey {
  std::string x_label, y_label, strong, faint;
  bool diverges = true;
};

struct Frame {
  double x = 0, y = 0, width = 0, height = 0;
};

void draw_cells(Scene& scene, const Heat& heat, const Frame& frame);
void draw_key(Scene& scene, const HeatKey& key, Point at, double width);
Scene draw_heats(const std::vector<Heat>& heats, const HeatKey& key, double width);

}  // namespace norma::draw
