// Polygons as pixels: the share of each pixel that they cover.
#pragma once

#include <vector>

#include "report/figures/scene.h"

namespace norma::draw {

using Contours = std::vector<std::vector<Point>>;

class Canvas {
 public:
  Canvas(int width, int height);

  // Inside: where contours wind around (non-zero rule).
  void fill(const Contours& contours, const Paint& paint);
  const std::vector<std::uint8_t>& pixels() const { return pixels_; }  // [height, width, 3]

 private:
  void cover(const Contours& contours);

  int width_, height_;
  std::vector<std::uint8_t> pixels_;
  std::vector<float> share_;  // of the pixels, of the shape at hand
  int top_ = 0, bottom_ = 0;  // rows that it may touch
};

// The area that a pen of this width covers: round ends and joins.
Contours stroked(const std::vector<Point>& line, bool closed, double width);
// Pieces of a broken line.
std::vector<std::vector<Point>> dashed(const std::vector<Point>& line, double dash);

}  // namespace norma::draw
