// Colours of tones on light paper, and the shapes of markers.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "report/figures/scene.h"

namespace norma::draw {
namespace {

// From strong to nearly paper, of even steps in lightness.
using Ramp = std::array<Rgb, 5>;
constexpr Ramp kRamp = {{{18, 53, 91}, {43, 108, 163}, {111, 168, 214}, {185, 214, 236}, {225, 233, 241}}};
constexpr Ramp kDarkRamp = {{{214, 234, 250}, {138, 192, 238}, {70, 134, 194}, {36, 80, 124}, {39, 49, 61}}};

std::uint8_t between(std::uint8_t low, std::uint8_t high, double share) {
  return static_cast<std::uint8_t>(std::lround(low + share * (high - low)));
}

Rgb at_level(const Ramp& ramp, double level) {
  const double place = std::clamp(std::isfinite(level) ? level : 1.0, 0.0, 1.0) * static_cast<double>(ramp.size() - 1);
  const std::size_t first = std::min(static_cast<std::size_t>(place), ramp.size() - 2);
  const Rgb low = ramp[first], high = ramp[first + 1];
  const double share = place - static_cast<double>(first);
  return {between(low.red, high.red, share), between(low.green, high.green, share),
          between(low.blue, high.blue, share)};
}

using Outline = std::vector<Point>;

Outline polygon(int corners, double turn) {
  Outline points;
  for (int i = 0; i < corners; ++i) {
    const double angle = 2 * std::numbers::pi * i / corners + turn;
    points.push_back({std::sin(angle), -std::cos(angle)});
  }
  return points;
}

// A plus; turned by an eighth it is a cross.
Outline plus(double turn) {
  constexpr double kArm = 0.36;
  const Outline upright = {{-kArm, -1.1}, {kArm, -1.1}, {kArm, -kArm}, {1.1, -kArm}, {1.1, kArm},   {kArm, kArm},
                           {kArm, 1.1},   {-kArm, 1.1}, {-kArm, kArm}, {-1.1, kArm}, {-1.1, -kArm}, {-kArm, -kArm}};
  Outline turned;
  for (const Point& p : upright) {
    turned.push_back({p.x * std::cos(turn) - p.y * std::sin(turn), p.x * std::sin(turn) + p.y * std::cos(turn)});
  }
  return turned;
}

Outline outline(int kind) {
  constexpr double kPi = std::numbers::pi;
  switch (kind % 8) {
    case 0: return polygon(20, 0);
    case 1: return polygon(4, kPi / 4);
    case 2: return polygon(3, 0);
    case 3: return polygon(4, 0);
    case 4: return polygon(3, kPi);
    case 5: return plus(0);
    case 6: return plus(kPi / 4);
    default: return polygon(5, 0);
  }
}

}  // namespace

Rgb colour_of(const Paint& paint) {
  switch (paint.tone) {
    case Tone::none: return {};
    case Tone::ink: return {28, 31, 35};
    case Tone::muted: return {89, 94, 102};
    case Tone::grid: return {224, 227, 231};
    case Tone::paper: return {255, 255, 255};
    case Tone::lead: return {11, 98, 168};
    case Tone::base: return {196, 72, 10};
    case Tone::rest: return {138, 142, 149};
    case Tone::ramp: return at_level(kRamp, paint.level);
  }
  return {};
}

Rgb colour_on_dark(double level) { return at_level(kDarkRamp, level); }

Shape marker(int kind, Point at, double radius, Tone tone, int scheme) {
  Shape shape{
      .points = outline(kind), .closed = true, .fill = {.tone = tone}, .stroke = {.tone = tone}, .scheme = scheme};
  for (Point& p : shape.points) p = {at.x + radius * p.x, at.y + radius * p.y};
  if (kind / 8 % 2 == 1) shape.fill.tone = Tone::paper;
  return shape;
}

}  // namespace norma::draw
