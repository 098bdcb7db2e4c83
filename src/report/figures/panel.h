// One panel of lines, drawn where a layout put it.
#pragma once

#include <algorithm>

#include "report/figures/axis.h"
#include "report/figures/chart.h"

namespace norma::draw {

inline constexpr double kSmall = 10.5, kTitle = 11.5;  // sizes of letters

// Where a panel is, inside its frame.
struct Place {
  double left = 0, top = 0, right = 0, bottom = 0;
  double end = 0;  // with the names
  Scale x, y;
};

inline int ticks_for(double height) { return std::max(2, static_cast<int>(height / 26)); }

struct PanelTexts {
  bool x = true, y = true;  // labels of ticks
  double names = 0;         // room for the names of lines; 0: they have none
};

void draw_panel(Scene& scene, const Panel& panel, const Place& place, const PanelTexts& texts);

}  // namespace norma::draw
