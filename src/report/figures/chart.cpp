#include "report/figures/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/figures/axis.h"
#include "report/figures/font.h"
#include "report/figures/labels.h"

namespace norma::draw {
namespace {

constexpr double kSmall = 10.5, kTitle = 11.5;  // sizes of letters
constexpr double kGap = 16;                     // between panels

// Where a panel is, inside its frame.
struct Place {
  double left = 0, top = 0, right = 0, bottom = 0;
  double end = 0;  // with the names
  Scale x, y;
};

bool drawn(const Line& line, std::size_t i, const Panel& panel) {
  return std::isfinite(line.y[i]) && std::isfinite(line.x[i]) && (!panel.y_log || line.y[i] > 0) &&
         (!panel.x_log || line.x[i] > 0);
}

// Bands count up to a quarter of the reach of the means, so that one wide interval does not flatten everything else.
Range y_range(const std::vector<const Panel*>& panels) {
  const bool log = panels.front()->y_log;
  Range means(log);
  for (const Panel* panel : panels) {
    for (const Line& line : panel->lines) {
      for (std::size_t i = 0; i < line.y.size(); ++i) means.add(line.y[i]);
      for (const double value : line.theory) means.add(value);
    }
    for (const Rule& rule : panel->rules) means.add(rule.y);
  }
  if (means.empty()) return means;
  Range range = means;
  const double reach = 0.25 * (log ? std::log(means.high() / means.low()) + 0.2 : means.high() - means.low());
  const double low = log ? means.low() * std::exp(-reach) : means.low() - reach;
  const double high = log ? means.high() * std::exp(reach) : means.high() + reach;
  for (const Panel* panel : panels) {
    for (const Line& line : panel->lines) {
      for (const double value : line.low) range.add(std::max(value, low));
      for (const double value : line.high) range.add(std::min(value, high));
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
  for (const double tick : scale.ticks(about))
    width = std::max(width, Font::get().width(tick_text(tick, scale), kSmall));
  return width;
}

int ticks_for(double height) { return std::max(2, static_cast<int>(height / 26)); }

class PanelDrawing {
 public:
  PanelDrawing(Scene& scene, const Panel& panel, const Place& place) : scene_(scene), panel_(panel), place_(place) {}

  void axes(bool x_texts, bool y_texts) {
    for (const double tick : place_.y.ticks(ticks_for(place_.bottom - place_.top))) {
      const double y = place_.y.at(tick);
      stroke({{place_.left, y}, {place_.right, y}}, Tone::grid, 1);
      if (y_texts) text({place_.left - 6, y + 3.5}, tick_text(tick, place_.y), Anchor::end, Tone::muted);
    }
    stroke({{place_.left, place_.bottom}, {place_.right, place_.bottom}}, Tone::rest, 1);
    double last = -1e9;
    for (const double tick : x_ticks()) {
      const double x = place_.x.at(tick);
      stroke({{x, place_.bottom}, {x, place_.bottom + 4}}, Tone::rest, 1);
      const std::string words = tick_text(tick, place_.x);
      const double half = Font::get().width(words, kSmall) / 2;
      if (!x_texts || x - half < last + 4) continue;
      text({x, place_.bottom + 15}, words, Anchor::middle, Tone::muted);
      last = x + half;
    }
    if (!panel_.title.empty()) {
      scene_.add(Text{.at = {place_.left, place_.top - 6},
                      .text = fitted(panel_.title, kTitle, place_.end - place_.left),
                      .size = kTitle,
                      .paint = {.tone = panel_.tone},
                      .scheme = panel_.scheme});
    }
    for (const Rule& rule : panel_.rules) {
      if (!place_.y.shows(rule.y)) continue;
      const double y = place_.y.at(rule.y);
      scene_.add(Shape{.points = {{place_.left, y}, {place_.right, y}}, .stroke = {.tone = Tone::muted}, .dash = 3});
      text({place_.left + 3, y - 3}, rule.label, Anchor::start, Tone::muted);
    }
  }

  void lines() {
    for (const Line& line : in_order()) {
      band(line);
      curve(line, line.theory, 1, 3);
    }
    for (const Line& line : in_order()) {
      curve(line, line.y, line.background ? 1 : line.tone == Tone::rest ? 1.4 : 2.2, line.dash);
      points(line);
    }
  }

  void names(double room) {
    std::vector<Label> labels;
    for (const Line& line : panel_.lines) {
      if (line.background || line.label.empty()) continue;
      for (std::size_t i = line.y.size(); i-- > 0;) {
        if (!drawn(line, i, panel_)) continue;
        labels.push_back({.from = {place_.x.at(line.x[i]), y_at(line.y[i])},
                          .text = line.label,
                          .tone = line.tone,
                          .scheme = line.scheme});
        break;
      }
    }
    place_labels(scene_, std::move(labels),
                 {.x = place_.right + 8, .top = place_.top, .bottom = place_.bottom, .room = room, .size = kSmall});
  }

 private:
  // What matters most is drawn last.
  std::vector<Line> in_order() const {
    std::vector<Line> lines = panel_.lines;
    const auto weight = [](const Line& line) {
      return line.background ? 0 : line.tone == Tone::lead ? 3 : line.tone == Tone::base ? 2 : 1;
    };
    std::stable_sort(lines.begin(), lines.end(), [&](const Line& a, const Line& b) { return weight(a) < weight(b); });
    return lines;
  }

  std::vector<double> x_ticks() const {
    return panel_.x_ticks.empty() ? place_.x.ticks(std::max(2, static_cast<int>((place_.right - place_.left) / 48)))
                                  : panel_.x_ticks;
  }

  double y_at(double value) const { return std::clamp(place_.y.at(value), place_.top, place_.bottom); }

  void band(const Line& line) {
    if (line.background || line.low.size() != line.y.size() || line.high.size() != line.y.size()) return;
    std::vector<Point> upper, lower;
    const auto flush = [&] {
      if (upper.size() > 1) {
        upper.insert(upper.end(), lower.rbegin(), lower.rend());
        scene_.add(Shape{.points = upper,
                         .closed = true,
                         .fill = {.tone = line.tone, .opacity = line.tone == Tone::rest ? 0.13 : 0.2},
                         .scheme = line.scheme});
      }
      upper.clear();
      lower.clear();
    };
    for (std::size_t i = 0; i < line.y.size(); ++i) {
      if (!drawn(line, i, panel_) || !std::isfinite(line.low[i]) || !std::isfinite(line.high[i])) {
        flush();
        continue;
      }
      const double x = place_.x.at(line.x[i]), low = panel_.y_log && line.low[i] <= 0 ? place_.y.low : line.low[i];
      upper.push_back({x, y_at(line.high[i])});
      lower.push_back({x, y_at(low)});
    }
    flush();
  }

  void curve(const Line& line, const std::vector<double>& y, double width, double dash) {
    std::vector<Point> part;
    const auto flush = [&] {
      if (part.size() > 1) {
        scene_.add(Shape{.points = part,
                         .stroke = {.tone = line.tone == Tone::none || line.background ? Tone::rest : line.tone,
                                    .opacity = line.background ? 0.4 : 1},
                         .width = width,
                         .dash = dash,
                         .scheme = line.background ? kNoScheme : line.scheme});
      }
      part.clear();
    };
    for (std::size_t i = 0; i < std::min(y.size(), line.x.size()); ++i) {
      if (!std::isfinite(y[i]) || (panel_.y_log && y[i] <= 0) || (panel_.x_log && line.x[i] <= 0))
        flush();
      else
        part.push_back({place_.x.at(line.x[i]), y_at(y[i])});
    }
    flush();
  }

  void points(const Line& line) {
    if (line.background) return;
    for (std::size_t i = 0; i < line.y.size(); ++i) {
      if (!drawn(line, i, panel_)) continue;
      const Point at = {place_.x.at(line.x[i]), y_at(line.y[i])};
      if (line.marker >= 0)
        scene_.add(marker(line.marker, at, line.tone == Tone::rest ? 2.6 : 3.2, line.tone, line.scheme));
      if (i < line.tips.size()) scene_.spots.push_back({at, line.scheme, line.tips[i]});
    }
    for (const double x : line.crosses) {
      const Point at = {place_.x.at(x), place_.top + 5};
      for (const double turn : {-3.0, 3.0}) {
        scene_.add(Shape{.points = {{at.x - 3, at.y - turn}, {at.x + 3, at.y + turn}},
                         .stroke = {.tone = line.tone == Tone::rest ? Tone::muted : line.tone},
                         .width = 1.6,
                         .scheme = line.scheme});
      }
    }
  }

  void stroke(std::vector<Point> points, Tone tone, double width) {
    scene_.add(Shape{.points = std::move(points), .stroke = {.tone = tone}, .width = width});
  }
  void text(Point at, std::string words, Anchor anchor, Tone tone) {
    scene_.add(Text{.at = at, .text = std::move(words), .size = kSmall, .anchor = anchor, .paint = {.tone = tone}});
  }

  Scene& scene_;
  const Panel& panel_;
  const Place& place_;
};

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
    return labelled + 8 + widest_tick(y_range(group).scale(0, 1), ticks_for(grid.height));
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
    place.y = y_range(group).scale(place.bottom, place.top);
    PanelDrawing drawing(scene, panels[i], place);
    drawing.axes(!shared || last, !shared || column == 0);
    drawing.lines();
    if (panels[i].names) drawing.names(room);
    if (!shared || (column == 0 && row == rows / 2)) {
      const double height = shared ? scene.height : place.bottom - place.top + 40;
      const double middle = shared ? (scene.height - bottom) / 2 : (place.top + place.bottom) / 2;
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
                     .text = panels[i].x_label,
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
