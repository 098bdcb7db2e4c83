// The font of figures: widths of texts, and outlines where a file has no font of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/figures/scene.h"

namespace norma::draw {

// What stands in src/report/font, a TrueType file; defined in a source that the build writes.
std::string_view embedded_font();

// Malformed bytes become U+FFFD.
std::vector<char32_t> code_points(std::string_view utf8);

class Font {
 public:
  static const Font& get();

  int glyph(char32_t letter) const;                          // 0: the font has none, and shows a box
  double advance(int glyph) const;                           // in units of the size
  std::vector<std::vector<Point>> outline(int glyph) const;  // contours, flattened, y upwards
  double width(std::string_view text, double size) const;
  int glyphs() const { return static_cast<int>(offsets_.size()) - 1; }
  const std::vector<std::pair<char32_t, int>>& letters() const { return letters_; }  // sorted

 private:
  Font();

  double units_ = 1;
  std::vector<double> advances_;
  std::vector<std::uint32_t> offsets_;  // of glyphs, in glyf
  std::string_view outlines_;
  std::vector<std::pair<char32_t, int>> letters_;
};

// As much of `text` as fits, with an ellipsis where some is left out.
std::string fitted(std::string_view text, double size, double width);

}  // namespace norma::draw
