#include "report/figures/raster.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace norma::draw {
namespace {

constexpr int kRows = 5;  // samples of a pixel's height; its width is covered exactly

struct Crossing {
  double x = 0;
  int direction = 0;
};

void crossings_at(const Contours& contours, double y, std::vector<Crossing>& found) {
  found.clear();
  for (const std::vector<Point>& contour : contours) {
    for (std::size_t i = 0; i < contour.size(); ++i) {
      const Point a = contour[i], b = contour[(i + 1) % contour.size()];
      if ((a.y <= y) == (b.y <= y)) continue;
      found.push_back({a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x), b.y > a.y ? 1 : -1});
    }
  }
  std::sort(found.begin(), found.end(), [](const Crossing& a, const Crossing& b) { return a.x < b.x; });
}

void add_span(float* row, int width, double from, double to) {
  from = std::max(from, 0.0);
  to = std::min(to, static_cast<double>(width));
  for (int x = static_cast<int>(from); x < to; ++x) {
    row[x] += static_cast<float>((std::min<double>(to, x + 1) - std::max<double>(from, x)) / kRows);
  }
}

// All pieces of a pen's area wind the same way, so that where they overlap they do not cancel.
std::vector<Point> wound(std::vector<Point> piece) {
  double area = 0;
  for (std::size_t i = 0; i < piece.size(); ++i) {
    const Point a = piece[i], b = piece[(i + 1) % piece.size()];
    area += a.x * b.y - b.x * a.y;
  }
  if (area < 0) std::reverse(piece.begin(), piece.end());
  return piece;
}

std::vector<Point> disc(Point at, double radius) {
  std::vector<Point> points;
  for (int i = 0; i < 12; ++i) {
    const double angle = i * std::numbers::pi / 6;
    points.push_back({at.x + radius * std::cos(angle), at.y + radius * std::sin(angle)});
  }
  return points;
}

}  // namespace

Canvas::Canvas(int width, int height)
    : width_(width),
      height_(height),
      pixels_(static_cast<std::size_t>(3 * width) * static_cast<std::size_t>(height), 255),
      share_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 0.0f) {}

void Canvas::cover(const Contours& contours) {
  double low = height_, high = 0;
  for (const std::vector<Point>& contour : contours) {
    for (const Point& p : contour) low = std::min(low, p.y), high = std::max(high, p.y);
  }
  top_ = std::clamp(static_cast<int>(std::floor(low)), 0, height_);
  bottom_ = std::clamp(static_cast<int>(std::ceil(high)), top_, height_);
  std::vector<Crossing> found;
  for (int y = top_; y < bottom_; ++y) {
    float* row = &share_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_)];
    std::fill(row, row + width_, 0.0f);
    for (int sample = 0; sample < kRows; ++sample) {
      crossings_at(contours, y + (sample + 0.5) / kRows, found);
      int winding = 0;
      for (std::size_t i = 0; i + 1 < found.size(); ++i) {
        winding += found[i].direction;
        if (winding != 0) add_span(row, width_, found[i].x, found[i + 1].x);
      }
    }
  }
}

void Canvas::fill(const Contours& contours, const Paint& paint) {
  if (paint.tone == Tone::none) return;
  cover(contours);
  const Rgb rgb = colour_of(paint);
  const std::uint8_t colour[3] = {rgb.red, rgb.green, rgb.blue};
  for (int y = top_; y < bottom_; ++y) {
    for (int x = 0; x < width_; ++x) {
      const std::size_t at =
          static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x);
      const double share = std::min(1.0, static_cast<double>(share_[at])) * paint.opacity;
      if (share <= 0) continue;
      for (std::size_t c = 0; c < 3; ++c) {
        std::uint8_t& pixel = pixels_[3 * at + c];
        pixel = static_cast<std::uint8_t>(std::lround(pixel + share * (colour[c] - pixel)));
      }
    }
  }
}

Contours stroked(const std::vector<Point>& line, bool closed, double width) {
  Contours pieces;
  const std::size_t segments = closed ? line.size() : line.size() - 1;
  for (std::size_t i = 0; i < segments; ++i) {
    const Point a = line[i], b = line[(i + 1) % line.size()];
    const double length = std::hypot(b.x - a.x, b.y - a.y);
    pieces.push_back(wound(disc(a, width / 2)));
    if (length == 0) continue;
    const double x = -(b.y - a.y) / length * width / 2, y = (b.x - a.x) / length * width / 2;
    pieces.push_back(wound({{a.x + x, a.y + y}, {b.x + x, b.y + y}, {b.x - x, b.y - y}, {a.x - x, a.y - y}}));
  }
  if (!closed) pieces.push_back(wound(disc(line.back(), width / 2)));
  return pieces;
}

std::vector<std::vector<Point>> dashed(const std::vector<Point>& line, double dash) {
  std::vector<std::vector<Point>> pieces;
  double left = dash;
  bool on = true;
  std::vector<Point> piece = {line.front()};
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    Point from = line[i];
    const Point to = line[i + 1];
    double length = std::hypot(to.x - from.x, to.y - from.y);
    while (length > left) {
      from = {from.x + (to.x - from.x) * left / length, from.y + (to.y - from.y) * left / length};
      piece.push_back(from);
      if (on) pieces.push_back(piece);
      piece = {from};
      on = !on;
      length -= left;
      left = dash;
    }
    left -= length;
    piece.push_back(to);
  }
  if (on && piece.size() > 1) pieces.push_back(piece);
  return pieces;
}

}  // namespace norma::draw
