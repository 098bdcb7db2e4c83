#include "report/figures/panel.h"

#include <cmath>

#include "report/figures/font.h"
#include "report/figures/labels.h"

namespace norma::draw {
namespace {

class PanelDrawing {
 public:
  PanelDrawing(Scene& scene, const Panel& panel, const Place& place) : scene_(scene), panel_(panel), place_(place) {}

  void axes(bool x_texts, bool y_texts) {
    const std::vector<double> levels = place_.y.ticks(ticks_for(place_.bottom - place_.top)), steps = x_ticks();
    const std::vector<std::string> heights = tick_texts(levels, place_.y), places = tick_texts(steps, place_.x);
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const double y = place_.y.at(levels[i]);
      stroke({{place_.left, y}, {place_.right, y}}, Tone::grid, 1);
      if (y_texts) text({place_.left - 6, y + 3.5}, heights[i], Anchor::end, Tone::muted);
    }
    stroke({{place_.left, place_.bottom}, {place_.right, place_.bottom}}, Tone::rest, 1);
    double last = -1e9;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!place_.x.shows(steps[i])) continue;
      const double x = place_.x.at(steps[i]), half = Font::get().width(places[i], kSmall) / 2;
      stroke({{x, place_.bottom}, {x, place_.bottom + 4}}, Tone::rest, 1);
      if (!x_texts || x - half < last + 4) continue;
      text({x, place_.bottom + 15}, places[i], Anchor::middle, Tone::muted);
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
      const double size = Font::get().width(rule.label, kSmall) + 3;
      if (room_at(place_.left, place_.left + size, y) >=
          std::min(kSmall, room_at(place_.right - size, place_.right, y)))
        text({place_.left + 3, y - 3}, rule.label, Anchor::start, Tone::muted);
      else
        text({place_.right - 3, y - 3}, rule.label, Anchor::end, Tone::muted);
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
        if (!drawn(line.x[i], line.y[i])) continue;
        const Point end = {place_.x.at(line.x[i]), y_at(line.y[i])};
        // The end of a line that is long before its name is marked: what leads to the name is no curve.
        if (line.marker < 0 && end.x < place_.right - kFarName) scene_.add(marker(0, end, 2.6, line.tone, line.scheme));
        labels.push_back({.from = end, .text = line.label, .tone = line.tone, .scheme = line.scheme});
        break;
      }
    }
    place_labels(scene_, std::move(labels),
                 {.x = place_.right + 8, .top = place_.top, .bottom = place_.bottom, .room = room, .size = kSmall});
  }

 private:
  // How far the nearest line is from a name that stands on a rule at height y, between two places.
  double room_at(double left, double right, double y) const {
    double room = place_.bottom - place_.top;
    for (const Line& line : panel_.lines) {
      for (std::size_t i = 0; i < line.y.size(); ++i) {
        if (!drawn(line.x[i], line.y[i])) continue;
        const double x = place_.x.at(line.x[i]);
        if (x >= left - 3 && x <= right + 3) room = std::min(room, std::abs(y_at(line.y[i]) - (y - 3 - kSmall / 3)));
      }
    }
    return room;
  }
  // Heights beyond the axis are moved to its end, places beyond it have none.
  bool drawn(double x, double y) const { return std::isfinite(y) && (!panel_.y_log || y > 0) && place_.x.shows(x); }

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
      if (!drawn(line.x[i], line.y[i]) || !std::isfinite(line.low[i]) || !std::isfinite(line.high[i])) {
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
      if (!drawn(line.x[i], y[i]))
        flush();
      else
        part.push_back({place_.x.at(line.x[i]), y_at(y[i])});
    }
    flush();
  }

  void points(const Line& line) {
    if (line.background) return;
    for (std::size_t i = 0; i < line.y.size(); ++i) {
      if (!drawn(line.x[i], line.y[i])) continue;
      const Point at = {place_.x.at(line.x[i]), y_at(line.y[i])};
      if (line.marker >= 0)
        scene_.add(marker(line.marker, at, line.tone == Tone::rest ? 2.6 : 3.2, line.tone, line.scheme));
      if (i < line.tips.size()) scene_.spots.push_back({at, line.scheme, line.tips[i]});
    }
    for (const double x : line.crosses) {
      if (!place_.x.shows(x)) continue;
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

}  // namespace

void draw_panel(Scene& scene, const Panel& panel, const Place& place, const PanelTexts& texts) {
  PanelDrawing drawing(scene, panel, place);
  drawing.axes(texts.x, texts.y);
  drawing.lines();
  if (texts.names > 0) drawing.names(texts.names);
}

}  // namespace norma::draw
