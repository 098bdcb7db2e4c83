#include "report/figures/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/figures/axis.h"
#include "report/figures/font.h"
#include "report/figures/panel.h"

namespace norma::draw {
namespace {

constexpr double kGap = 16;  // between panels

// Bands count up to a quarter of the reach of the means, so that one wide interval does not flatten everything else.
// Above a rule its name has room, and does not lie on the title.
Range y_range(const std::vector<const Panel*>& panels, double height) {
  const bool log = panels.front()->y_log;
  const double most = panels.front()->y_most;
  Range means(log);
  for (const Panel* panel : panels) {
    for (const Line& line : panel->lines) {
      for (std::size_t i = 0; i < line.y.size(); ++i) means.add(std::min(line.y[i], most));
      for (const double value : line.theory) means.add(std::min(value, most));
    }
    for (const Rule& rule : panel->rules) means.add(rule.y);
  }
  if (means.empty()) return means;
  Range range = means;
  const double reach = 0.25 * (log ? std::log(means.high() / means.low()) + 0.2 : means.high() - means.low());
  const double low = log ? means.low() * std::exp(-reach) : means.low() - reach;
  const double high = std::min(most, log ? means.high() * std::exp(reach) : means.high() + reach);
  for (const Panel* panel : panels) {
    for (const Line& line : panel->lines) {
      for (const double value : line.low) range.add(std::max(value, low));
      for (const double value : line.high) range.add(std::min(value, high));
    }
  }
  const double room = 1.4 * kSmall / height;
  for (const Panel* panel : panels) {
    for (const Rule& rule : panel->rules) {
      if (rule.label.empty()) continue;
      range.add(log ? rule.y * std::pow(range.high() / range.low(), room)
                    : rule.y + room * (range.high() - range.low()));
    }
  }
  return range;
}

Range x_range(const std::vector<const Panel*>& panels) {
  Range range(panels.front()->x_log);
  for (const Panel* panel : panels) {
    for (const double tick : panel->x_ticks) range.add(tick);
    for (const Line& line : panel->lines) {
      for (const double x : line.x) range.add(x);
      for (const double x : line.crosses) range.add(x);
    }
  }
  return range;
}

double widest_tick(const Scale& scale, int about) {
  double width = 0;
  for (const std::string& text : tick_texts(scale.ticks(about), scale))
    width = std::max(width, Font::get().width(text, kSmall));
  return width;
}

double room_for_names(const std::vector<Panel>& panels, double width) {
  double widest = 0;
  for (const Panel& panel : panels) {
    if (!panel.names) continue;
    for (const Line& line : panel.lines) {
      if (!line.background) widest = std::max(widest, Font::get().width(line.label, kSmall));
    }
  }
  return std::min(widest, 0.42 * width);
}

}  // namespace

Scene draw_panels(const std::vector<Panel>& panels, const Grid& grid, double width) {
  Scene scene{.width = width, .height = 0, .marks = {}, .spots = {}};
  if (panels.empty()) return scene;
  const int columns = std::min<int>(grid.columns, static_cast<int>(panels.size()));
  const int rows = (static_cast<int>(panels.size()) + columns - 1) / columns;
  const bool shared = grid.axes == Axes::shared,
             titled = std::any_of(panels.begin(), panels.end(), [](const Panel& one) { return !one.title.empty(); });
  std::vector<const Panel*> all;
  for (const Panel& panel : panels) all.push_back(&panel);

  const double top = titled ? 20 : 10, below = shared ? 10 : 38, bottom = 40;
  const double row_height = top + grid.height + below;
  const double labelled = 15;  // the quantity, upwards
  const auto margin_of = [&](const std::vector<const Panel*>& group) {
    return labelled + 8 + widest_tick(y_range(group, grid.height).scale(0, 1), ticks_for(grid.height));
  };
  const double common = shared ? margin_of(all) : 0;
  const double cell = (width - common - kGap * (columns - 1)) / columns;
  const double room = room_for_names(panels, cell);
  scene.height = rows * row_height + bottom - below;

  for (std::size_t i = 0; i < panels.size(); ++i) {
    const int column = static_cast<int>(i) % columns, row = static_cast<int>(i) / columns;
    const bool last = i + static_cast<std::size_t>(columns) >= panels.size();
    const std::vector<const Panel*> group = shared ? all : std::vector<const Panel*>{&panels[i]};
    Place place;
    const double margin = shared ? common : margin_of(group), start = common + column * (cell + kGap);
    place.left = start + (shared ? 0 : margin);
    place.end = start + cell;
    place.right = place.end - (panels[i].names && room > 0 ? room + 10 : 10);
    place.top = row * row_height + top;
    place.bottom = place.top + grid.height;
    place.x = x_range(group).scale(place.left, place.right, panels[i].x_log ? 0.04 : 0.02);
    place.y = y_range(group, grid.height).scale(place.bottom, place.top);
    draw_panel(scene, panels[i], place,
               {.x = !shared || last, .y = !shared || column == 0, .names = panels[i].names ? room : 0});
    if (!shared || (column == 0 && row == rows / 2)) {
      const double middle = shared ? (scene.height - bottom) / 2 : (place.top + place.bottom) / 2;
      const double height = shared ? 2 * middle : place.bottom - place.top + 20;
      scene.add(Text{.at = {place.left - margin + 10, middle},
                     .text = fitted(panels[i].y_label, kSmall, height),
                     .size = kSmall,
                     .anchor = Anchor::middle,
                     .paint = {.tone = Tone::ink},
                     .upwards = true});
    }
    if (!shared || i + 1 == panels.size()) {
      const double middle = shared ? common + (width - common) / 2 : (place.left + place.right) / 2;
      scene.add(Text{.at = {middle, (shared ? scene.height - 8 : place.bottom + 32)},
                     .text = fitted(panels[i].x_label, kSmall, shared ? width - common : place.end - place.left),
                     .size = kSmall,
                     .anchor = Anchor::middle,
                     .paint = {.tone = Tone::ink}});
    }
  }
  return scene;
}

std::string exact(double value) {
  if (std::isnan(value)) return "nan";
  return fmt::format("{}", value);
}

FigureTable numbers_of(const std::vector<Panel>& panels) {
  FigureTable table{.columns = {"panel", "series", "x", "y", "low", "high", "theory"}};
  const auto value = [](const std::vector<double>& of, std::size_t i) {
    return i < of.size() ? exact(of[i]) : std::string();
  };
  for (const Panel& panel : panels) {
    for (const Line& line : panel.lines) {
      if (line.background) continue;
      for (std::size_t i = 0; i < line.y.size(); ++i) {
        table.rows.push_back({panel.title, line.label, value(line.x, i), value(line.y, i), value(line.low, i),
                              value(line.high, i), value(line.theory, i)});
      }
    }
  }
  if (!panels.empty()) {
    table.columns[2] = panels.front().x_label;
    const bool same = std::all_of(panels.begin(), panels.end(),
                                  [&](const Panel& one) { return one.y_label == panels.front().y_label; });
    if (same) table.columns[3] = panels.front().y_label;
  }
  return table;
}

}  // namespace norma::draw
