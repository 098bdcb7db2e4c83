#include "report/figures/dots.h"

#include <algorithm>
#include <cmath>

#include "report/figures/axis.h"
#include "report/figures/chart.h"
#include "report/figures/font.h"

namespace norma::draw {
namespace {

constexpr double kLetters = 10.5, kName = 11.5;
constexpr double kBreak = 26;  // width of an axis beyond a break
constexpr double kMarker = 4;  // half of its width

struct Columns {
  double names = 0, dots = 0, dots_end = 0, digits = 0, maps = 0, maps_end = 0, row = 28, top = 22;
};

Columns columns_of(const Dots& dots, double width) {
  const Font& font = Font::get();
  const bool narrow = width < 500;
  const bool mapped =
      std::any_of(dots.rows.begin(), dots.rows.end(), [](const DotRow& row) { return row.map.has_value(); });
  double names = 0, digits = 0;
  for (const DotRow& row : dots.rows) {
    names = std::max(names, font.width(row.label, kName));
    digits = std::max(digits, font.width(row.digits, kLetters));
    if (narrow) names = std::max(names, font.width(row.digits, kLetters));
  }
  Columns columns;
  columns.row = narrow ? 34 : 28;
  columns.names = std::min(names, narrow ? 118.0 : 150.0);
  const double maps = mapped ? (narrow ? 74.0 : 140.0) : 0;
  columns.maps_end = width - 1;
  columns.maps = columns.maps_end - maps;
  constexpr double kWider =
      1.15;  // than ours, the letters of a browser may be: digits must not reach the rule before them
  columns.digits = columns.maps - (narrow || digits == 0 ? 0 : kWider * digits + 16);
  columns.dots = columns.names + 14;
  columns.dots_end = columns.digits - (narrow ? 12 : 10);
  return columns;
}

// The axis: values, and rules that it is broken for.
struct BrokenAxis {
  Scale scale;
  std::vector<std::pair<double, DotRule>> rules;  // where they are drawn
  bool before = false, after = false;             // broken
};

BrokenAxis axis_of(const Dots& dots, double left, double right) {
  Range values(dots.log), all(dots.log);
  if (dots.from) values.add(*dots.from);
  if (dots.to) values.add(*dots.to);
  for (const DotRow& row : dots.rows) {
    if (row.value.n < 1 || row.far) continue;
    values.add(row.value.mean);
    if (!dots.log || row.value.low > 0) values.add(row.value.low);
    values.add(row.value.high);
  }
  BrokenAxis axis;
  const double size = values.empty() ? 0 : values.high() - values.low();
  std::vector<DotRule> before, inside, after;
  for (const DotRule& rule : dots.rules) {
    const bool near = values.empty() || (rule.x > values.low() - 0.8 * size && rule.x < values.high() + 0.8 * size);
    (near ? inside : rule.x < values.low() ? before : after).push_back(rule);
  }
  for (const DotRule& rule : inside) values.add(rule.x);
  axis.before = !before.empty();
  axis.after = !after.empty();
  axis.scale = values.scale(left + (axis.before ? kBreak : 4), right - (axis.after ? kBreak : 4), dots.from ? 0 : 0.04);
  for (const DotRule& rule : before) axis.rules.emplace_back(left + 4, rule);
  for (const DotRule& rule : inside) axis.rules.emplace_back(axis.scale.at(rule.x), rule);
  for (const DotRule& rule : after) axis.rules.emplace_back(right - 4, rule);
  return axis;
}

class DotDrawing {
 public:
  DotDrawing(const Dots& dots, double width)
      : dots_(dots), narrow_(width < 500), at_(columns_of(dots, width)), axis_(axis_of(dots, at_.dots, at_.dots_end)) {
    scene.width = width;
    stacked_ = axis_.rules.size() > 1 && (narrow_ || labels_meet());
    at_.top = stacked_ ? 34 : 22;
    bottom_ = at_.top + at_.row * static_cast<double>(dots.rows.size());
    scene.height = bottom_ + 36;
  }

  void frame() {
    const int about = std::max(3, static_cast<int>((axis_.scale.to - axis_.scale.from) / 45));
    const std::vector<double> ticks = axis_.scale.ticks(about);
    const std::vector<std::string> texts = tick_texts(ticks, axis_.scale);
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      const double x = axis_.scale.at(ticks[i]);
      line({{x, at_.top - 4}, {x, bottom_}}, Tone::grid, 1);
      text({x, bottom_ + 14}, texts[i], Anchor::middle, Tone::muted);
    }
    line({{axis_.scale.from, bottom_}, {axis_.scale.to, bottom_}}, Tone::rest, 1);
    if (axis_.before) slashes(at_.dots + 14);
    if (axis_.after) slashes(at_.dots_end - 14);
    double height = at_.top - (stacked_ ? 21 : 9);
    for (const auto& [x, rule] : axis_.rules) {
      scene.add(Shape{.points = {{x, height + 4}, {x, bottom_}}, .stroke = {.tone = Tone::muted}, .dash = 3});
      const bool right = on_the_right(x);
      text({right ? x + 4 : x - 4, height}, rule.label, right ? Anchor::end : Anchor::start, Tone::muted);
      if (stacked_) height = at_.top - 9;
    }
    const std::string label = fitted(dots_.x_label, kLetters, scene.width * 0.6);
    if (narrow_ && at_.maps < at_.maps_end)  // beside the label of the maps, with the room below the names
      text({at_.maps - 16, bottom_ + 29}, label, Anchor::end, Tone::ink);
    else
      text({(at_.dots + at_.dots_end) / 2, bottom_ + 29}, label, Anchor::middle, Tone::ink);
  }

  void rows() {
    for (std::size_t i = 0; i < dots_.rows.size(); ++i)
      row(dots_.rows[i], at_.top + at_.row * (static_cast<double>(i) + 0.5));
    const auto mapped =
        std::find_if(dots_.rows.begin(), dots_.rows.end(), [](const DotRow& one) { return one.map.has_value(); });
    if (mapped == dots_.rows.end()) return;
    const std::vector<std::string>& x = mapped->map->x;
    if (!x.empty()) {
      text({at_.maps, bottom_ + 14}, x.front(), Anchor::start, Tone::muted);
      text({at_.maps_end, bottom_ + 14}, x.back(), Anchor::end, Tone::muted);
    }
    text({at_.maps_end, bottom_ + 29}, narrow_ ? "peak rate" : dots_.key.x_label, Anchor::end, Tone::ink);
    text({at_.maps_end, at_.top - 9}, dots_.key.y_label, Anchor::end, Tone::muted);
    draw_key(scene, dots_.key, {narrow_ ? 0 : at_.dots, bottom_ + 42}, scene.width);
    scene.height = bottom_ + 56;
  }

  Scene scene{};

 private:
  void row(const DotRow& row, double y) {
    const Tone words = row.tone == Tone::rest ? Tone::ink : row.tone;
    const bool digits_below = narrow_ && !row.digits.empty();
    scene.add(Text{.at = {0, y + (digits_below ? -2 : 4)},
                   .text = fitted(row.label, kName, at_.names + 4),
                   .size = kName,
                   .paint = {.tone = words},
                   .scheme = row.scheme});
    if (!row.digits.empty()) {
      const Point at = digits_below ? Point{0, y + 11} : Point{at_.maps - 14, y + 4};
      scene.add(Text{.at = at,
                     .text = row.digits,
                     .size = kLetters,
                     .anchor = digits_below ? Anchor::start : Anchor::end,
                     .paint = {.tone = words == Tone::ink ? Tone::muted : words},
                     .scheme = row.scheme});
    }
    if (row.value.n > 0 && std::isfinite(row.value.mean) && (!dots_.log || row.value.mean > 0))
      dot(row, y);
    else
      scene.add(Text{.at = {axis_.scale.from + 4, y + 4},
                     .text = fitted(row.note, kLetters, at_.dots_end - axis_.scale.from),
                     .size = kLetters,
                     .paint = {.tone = Tone::muted},
                     .scheme = row.scheme});
    if (row.map) draw_cells(scene, *row.map, {at_.maps, y - 11, at_.maps_end - at_.maps, 22});
  }

  void dot(const DotRow& row, double y) {
    const double left = axis_.before ? at_.dots + 4 : axis_.scale.from,
                 right = axis_.after ? at_.dots_end - 4 : axis_.scale.to;
    const auto x = [&](double value) { return std::clamp(axis_.scale.at(value), left, right); };
    const Tone tone = row.tone == Tone::rest ? Tone::muted : row.tone;
    if (row.value.n > 1 && !row.far && (!dots_.log || row.value.high > 0)) {
      const double low = dots_.log && row.value.low <= 0 ? axis_.scale.from : x(row.value.low),
                   high = x(row.value.high);
      scene.add(Shape{.points = {{low, y}, {high, y}}, .stroke = {.tone = tone}, .width = 1.6, .scheme = row.scheme});
      for (const double end : {low, high}) {
        if (std::abs(end - x(row.value.mean)) < kMarker + 1.5) continue;  // it would disfigure the marker
        scene.add(Shape{
            .points = {{end, y - 3.5}, {end, y + 3.5}}, .stroke = {.tone = tone}, .width = 1.6, .scheme = row.scheme});
      }
    }
    scene.add(marker(row.marker, {x(row.value.mean), y}, kMarker, tone, row.scheme));
    if (!row.tip.empty()) scene.spots.push_back({{x(row.value.mean), y}, row.scheme, row.tip});
  }

  bool on_the_right(double x) const { return x > (at_.dots + at_.dots_end) / 2; }
  // Labels of rules point inwards; whether two of them would lie on each other in one line.
  bool labels_meet() const {
    std::vector<std::pair<double, double>> spans;
    for (const auto& [x, rule] : axis_.rules) {
      const double size = 1.15 * Font::get().width(rule.label, kLetters) + 8;  // other fonts are wider
      spans.emplace_back(on_the_right(x) ? x + 4 - size : x - 4, on_the_right(x) ? x + 4 : x - 4 + size);
    }
    for (std::size_t a = 0; a < spans.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b)
        if (spans[a].first < spans[b].second && spans[b].first < spans[a].second) return true;
    }
    return false;
  }
  void slashes(double x) {
    for (const double offset : {-2.0, 2.0})
      line({{x + offset - 2, bottom_ + 4}, {x + offset + 2, bottom_ - 4}}, Tone::muted, 1);
  }
  void line(std::vector<Point> points, Tone tone, double width) {
    scene.add(Shape{.points = std::move(points), .stroke = {.tone = tone}, .width = width});
  }
  void text(Point at, std::string words, Anchor anchor, Tone tone) {
    scene.add(Text{.at = at, .text = std::move(words), .size = kLetters, .anchor = anchor, .paint = {.tone = tone}});
  }

  const Dots& dots_;
  bool narrow_, stacked_ = false;  // stacked: labels of rules below one another
  Columns at_;
  BrokenAxis axis_;
  double bottom_ = 0;
};

}  // namespace

Scene draw_dots(const Dots& dots, double width) {
  DotDrawing drawing(dots, width);
  drawing.frame();
  drawing.rows();
  return std::move(drawing.scene);
}

FigureTable numbers_of(const Dots& dots) {
  FigureTable table{.columns = {"scheme", dots.x_label, "low", "high", "n", "note"}};
  for (const DotRow& row : dots.rows) {
    const bool known = row.value.n > 0;
    table.rows.push_back({row.label, known ? exact(row.value.mean) : "", known ? exact(row.value.low) : "",
                          known ? exact(row.value.high) : "", std::to_string(row.value.n), row.note});
  }
  return table;
}

void put(Scene& into, const Scene& part, double x, double y) {
  const auto move = [&](Point& p) { p = {p.x + x, p.y + y}; };
  for (auto mark : part.marks) {
    if (Shape* shape = std::get_if<Shape>(&mark)) {
      for (Point& p : shape->points) move(p);
    } else {
      move(std::get<Text>(mark).at);
    }
    into.marks.push_back(std::move(mark));
  }
  for (Spot spot : part.spots) {
    move(spot.at);
    into.spots.push_back(std::move(spot));
  }
  into.width = std::max(into.width, x + part.width);
  into.height = std::max(into.height, y + part.height);
}

}  // namespace norma::draw
