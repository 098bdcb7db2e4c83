// A drawing before it is a file: shapes and texts in units of CSS pixels, y downwards, and spots that can be pointed
// at.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace norma::draw {

struct Point {
  double x = 0, y = 0;
};

// What a mark is for; docs/figures.md. Colours of light paper are in tones.cpp, those of a page in its style.
enum class Tone : std::uint8_t { none, ink, muted, grid, paper, lead, base, rest, ramp };

struct Paint {
  Tone tone = Tone::none;
  double opacity = 1;
  double level = 0;  // of the ramp: 0 is strong, 1 is nearly paper
};

struct Rgb {
  std::uint8_t red = 0, green = 0, blue = 0;
};
Rgb colour_of(const Paint& paint);  // on light paper
Rgb colour_on_dark(double level);   // of the ramp; other tones have theirs in the page's style

inline constexpr int kNoScheme = -1;

// Points joined by straight lines.
struct Shape {
  std::vector<Point> points;
  bool closed = false;
  Paint fill = {}, stroke = {};
  double width = 1;  // of the stroke
  double dash = 0;   // length of dashes and gaps; 0: none
  int scheme = kNoScheme;
};

enum class Anchor : std::uint8_t { start, middle, end };

struct Text {
  Point at;  // on the base line
  std::string text;
  double size = 11;
  Anchor anchor = Anchor::start;
  Paint paint = {.tone = Tone::ink};
  bool upwards = false;  // turned by a quarter, read from below
  int scheme = kNoScheme;
};

// Says `text` when pointed at, and belongs to a scheme.
struct Spot {
  Point at;
  int scheme = kNoScheme;
  std::string text;
};

struct Scene {
  double width = 0, height = 0;
  std::vector<std::variant<Shape, Text>> marks;
  std::vector<Spot> spots;

  void add(Shape shape) { marks.emplace_back(std::move(shape)); }
  void add(Text text) {
    if (!text.text.empty()) marks.emplace_back(std::move(text));
  }
};

inline std::vector<Point> box(double x, double y, double width, double height) {
  return {{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}};
}

// A closed shape that tells schemes apart without colour; the ninth looks like the first, but hollow.
Shape marker(int kind, Point at, double radius, Tone tone, int scheme);

}  // namespace norma::draw
