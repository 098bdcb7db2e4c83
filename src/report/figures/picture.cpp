#include "norma/report/picture.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "norma/core/error.h"
#include "report/figures/writers.h"

namespace norma {
namespace {

constexpr std::int64_t kPictureGap = 2, kLeastSide = 48, kPlane = 384;
constexpr double kReach = 3;

struct Pixels {
  std::int64_t width, height;
  std::string rgb;

  Pixels(std::int64_t w, std::int64_t h) : width(w), height(h), rgb(static_cast<std::size_t>(3 * w * h), '\xff') {}
  void set(std::int64_t x, std::int64_t y, int channel, double value) {
    if (x < 0 || y < 0 || x >= width || y >= height) return;
    const double level = std::clamp(value, 0.0, 1.0) * 255;
    rgb[static_cast<std::size_t>(3 * (y * width + x) + channel)] = static_cast<char>(std::lround(level));
  }
};

// Points of a plane as small dots that grow darker where they meet.
Pixels plane_of(std::span<const float> points) {
  Pixels pixels(kPlane, kPlane);
  std::vector<double> ink(static_cast<std::size_t>(kPlane * kPlane), 0);
  const auto place = [](double value) {
    return static_cast<std::int64_t>(std::floor((value + kReach) / (2 * kReach) * static_cast<double>(kPlane)));
  };
  for (std::size_t i = 0; i + 1 < points.size(); i += 2) {
    if (!std::isfinite(points[i]) || !std::isfinite(points[i + 1])) continue;
    const std::int64_t x = place(std::clamp<double>(points[i], -100, 100)),
                       y = kPlane - 1 - place(std::clamp<double>(points[i + 1], -100, 100));
    for (const std::int64_t dx : {0, 1}) {
      for (const std::int64_t dy : {0, 1}) {
        if (x + dx < 0 || x + dx >= kPlane || y + dy < 0 || y + dy >= kPlane) continue;
        ink[static_cast<std::size_t>((y + dy) * kPlane + x + dx)] += 0.5;
      }
    }
  }
  for (std::int64_t at = 0; at < kPlane * kPlane; ++at) {
    for (int c = 0; c < 3; ++c) pixels.set(at % kPlane, at / kPlane, c, std::exp(-ink[static_cast<std::size_t>(at)]));
  }
  return pixels;
}

struct Levels {
  double black = 0, white = 1;
};

Levels levels_of(std::span<const float> samples) {
  std::vector<float> finite;
  for (const float x : samples) {
    if (std::isfinite(x)) finite.push_back(x);
  }
  if (finite.empty()) return {};
  std::sort(finite.begin(), finite.end());
  const std::size_t edge = finite.size() / 400;
  const double black = finite[edge], white = finite[finite.size() - 1 - edge];
  return {black, white > black ? white : black + 1};
}

Pixels grid_of(const PictureShape& s, std::span<const float> samples) {
  const auto columns = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(s.count))));
  const std::int64_t rows = (s.count + columns - 1) / columns;
  const std::int64_t times = std::max<std::int64_t>(1, kLeastSide / std::max(s.height, s.width));
  const std::int64_t across = s.width * times + kPictureGap, down = s.height * times + kPictureGap;
  const Levels levels = levels_of(samples);
  Pixels pixels(columns * across + kPictureGap, rows * down + kPictureGap);
  for (std::int64_t sample = 0; sample < s.count; ++sample) {
    const std::int64_t left = sample % columns * across + kPictureGap, top = sample / columns * down + kPictureGap;
    for (std::int64_t y = 0; y < s.height * times; ++y) {
      for (std::int64_t x = 0; x < s.width * times; ++x) {
        const std::int64_t pixel = (sample * s.height + y / times) * s.width + x / times;
        for (int c = 0; c < 3; ++c) {
          const std::int64_t channel = s.channels == 3 ? c : 0;
          const double value = samples[static_cast<std::size_t>(pixel * s.channels + channel)];
          pixels.set(left + x, top + y, c, (value - levels.black) / (levels.white - levels.black));
        }
      }
    }
  }
  return pixels;
}

}  // namespace

std::string samples_png(const PictureShape& shape, std::span<const float> samples) {
  NORMA_ASSERT(std::ssize(samples) == shape.count * shape.height * shape.width * shape.channels);
  const bool plane = shape.height == 1 && shape.width == 1 && shape.channels == 2;
  const Pixels pixels = plane ? plane_of(samples) : grid_of(shape, samples);
  return draw::png_file(static_cast<int>(pixels.width), static_cast<int>(pixels.height), pixels.rgb, 1);
}

}  // namespace norma
