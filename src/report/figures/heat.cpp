#include "report/figures/heat.h"

#include <algorithm>
#include <cmath>

#include "report/figures/font.h"

namespace norma::draw {
namespace {

constexpr double kHeatLetters = 10.5;

// Lines from the lower left to the upper right, clipped to the cell.
void hatch(Scene& scene, const Frame& cell, double step, int scheme) {
  for (double offset = step / 2; offset < cell.width + cell.height; offset += step) {
    const double from = std::max(0.0, offset - cell.height), to = std::min(cell.width, offset);
    scene.add(Shape{.points = {{cell.x + from, cell.y + offset - from}, {cell.x + to, cell.y + offset - to}},
                    .stroke = {.tone = Tone::muted},
                    .width = 0.8,
                    .scheme = scheme});
  }
}

void draw_cell(Scene& scene, const HeatCell& cell, const Frame& frame, int scheme) {
  const std::vector<Point> outline = box(frame.x, frame.y, frame.width, frame.height);
  if (cell.diverged >= 1) {
    scene.add(Shape{.points = outline,
                    .closed = true,
                    .fill = {.tone = Tone::paper},
                    .stroke = {.tone = Tone::grid},
                    .width = 0.8});
    hatch(scene, frame, 5, kNoScheme);
  } else if (std::isfinite(cell.level)) {
    scene.add(Shape{.points = outline,
                    .closed = true,
                    .fill = {.tone = Tone::ramp, .level = cell.level},
                    .stroke = {.tone = Tone::paper},
                    .width = 0.8});
    if (cell.diverged > 0) hatch(scene, frame, 10, kNoScheme);
  }  // blank: not tried
  const Point middle = {frame.x + frame.width / 2, frame.y + frame.height / 2};
  if (cell.best) {
    Shape ring = marker(0, middle, std::min({4.0, frame.width / 3, frame.height / 3}), Tone::paper, kNoScheme);
    ring.stroke = {.tone = Tone::ink};
    scene.add(std::move(ring));
  }
  if (!cell.tip.empty()) scene.spots.push_back({middle, scheme, cell.tip});
}

int columns_for(std::size_t count, double width) {
  return std::max(1, std::min(static_cast<int>(count), width < 500 ? 2 : 4));
}

}  // namespace

void draw_cells(Scene& scene, const Heat& heat, const Frame& frame) {
  const std::size_t rows = heat.cells.size();
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t columns = heat.cells[row].size();
    const double width = frame.width / static_cast<double>(columns), height = frame.height / static_cast<double>(rows);
    for (std::size_t column = 0; column < columns; ++column) {
      draw_cell(scene, heat.cells[row][column],
                {frame.x + static_cast<double>(column) * width,
                 frame.y + frame.height - static_cast<double>(row + 1) * height, width, height},
                heat.scheme);
    }
  }
}

void draw_key(Scene& scene, const HeatKey& key, Point at, double width) {
  const Font& font = Font::get();
  const auto text = [&](double x, const std::string& words) {
    scene.add(Text{.at = {x, at.y + 9}, .text = words, .size = kHeatLetters, .paint = {.tone = Tone::muted}});
    return x + font.width(words, kHeatLetters) + 6;
  };
  double x = text(at.x, key.strong);
  for (int i = 0; i < 8; ++i, x += 9) {
    scene.add(Shape{.points = box(x, at.y, 9, 10), .closed = true, .fill = {.tone = Tone::ramp, .level = i / 7.0}});
  }
  x = text(x + 6, key.faint) + 8;
  if (!key.diverges || x + 60 > at.x + width) return;
  draw_cell(scene, {.diverged = 1}, {x, at.y, 18, 10}, kNoScheme);
  x = text(x + 23, "diverged") + 8;
  if (x + 60 > at.x + width) return;
  draw_cell(scene, {.level = 0.2, .best = true}, {x, at.y, 18, 10}, kNoScheme);
  text(x + 23, "chosen");
}

Scene draw_heats(const std::vector<Heat>& heats, const HeatKey& key, double width) {
  Scene scene{.width = width, .height = 0, .marks = {}, .spots = {}};
  const int columns = columns_for(heats.size(), width);
  double margin = 0;
  std::size_t rows_in = 1;
  for (const Heat& heat : heats) {
    rows_in = std::max(rows_in, heat.cells.size());
    for (const std::string& name : heat.y) margin = std::max(margin, Font::get().width(name, kHeatLetters));
  }
  margin += 22;
  const double gap = 14, cell = (width - margin - gap * (columns - 1)) / columns;
  const double height = std::clamp(20.0 * static_cast<double>(rows_in), 44.0, std::max(60.0, cell)),
               pitch = height + 40;
  const int rows = (static_cast<int>(heats.size()) + columns - 1) / columns;
  for (std::size_t i = 0; i < heats.size(); ++i) {
    const Heat& heat = heats[i];
    const int column = static_cast<int>(i) % columns, row = static_cast<int>(i) / columns;
    const Frame frame = {margin + column * (cell + gap), 18 + row * pitch, cell, height};
    scene.add(Text{.at = {frame.x, frame.y - 6},
                   .text = fitted(heat.title, 11.5, cell),
                   .size = 11.5,
                   .paint = {.tone = heat.tone},
                   .scheme = heat.scheme});
    draw_cells(scene, heat, frame);
    const auto label = [&](double x, double y, const std::string& words, Anchor anchor) {
      scene.add(
          Text{.at = {x, y}, .text = words, .size = kHeatLetters, .anchor = anchor, .paint = {.tone = Tone::muted}});
    };
    if (!heat.x.empty()) {
      label(frame.x, frame.y + height + 13, heat.x.front(), Anchor::start);
      if (heat.x.size() > 1) label(frame.x + cell, frame.y + height + 13, heat.x.back(), Anchor::end);
    }
    if (column == 0) {
      const double step = height / static_cast<double>(std::max<std::size_t>(1, heat.y.size()));
      const std::size_t every = std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(12 / step)));
      for (std::size_t k = 0; k < heat.y.size(); k += every)
        label(margin - 6, frame.y + height - (static_cast<double>(k) + 0.5) * step + 3.5, heat.y[k], Anchor::end);
    }
  }
  const double bottom = 18 + rows * pitch - 14;
  scene.add(Text{.at = {margin + (width - margin) / 2, bottom + 8},
                 .text = key.x_label,
                 .size = kHeatLetters,
                 .anchor = Anchor::middle});
  scene.add(Text{.at = {10, 18 + (rows * pitch - 40) / 2},
                 .text = key.y_label,
                 .size = kHeatLetters,
                 .anchor = Anchor::middle,
                 .upwards = true});
  draw_key(scene, key, {margin, bottom + 20}, width - margin);
  scene.height = bottom + 36;
  return scene;
}

}  // namespace norma::draw
