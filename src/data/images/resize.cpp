#include "data/images/resize.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace norma {
namespace {

// Which pixels of an axis make one of the result, and with what weights.
struct Taps {
  std::int64_t first = 0;
  std::vector<double> weights = {};  // their sum is 1
};

std::vector<Taps> taps_of(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), reach = std::max(scale, 1.0);
  std::vector<Taps> all;
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(centre - reach)));
    const auto last = std::min<std::int64_t>(from - 1, static_cast<std::int64_t>(std::ceil(centre + reach)));
    Taps taps;
    double sum = 0;
    for (std::int64_t j = first; j <= last; ++j) {
      const double weight = 1 - std::abs(static_cast<double>(j) + 0.5 - centre) / reach;
      if (weight <= 0) continue;
      if (taps.weights.empty()) taps.first = j;
      sum += taps.weights.emplace_back(weight);
    }
    for (double& weight : taps.weights) weight /= sum;
    all.push_back(std::move(taps));
  }
  return all;
}

template <typename T>
T rounded_to(double value) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(std::clamp(std::floor(value + 0.5), 0.0, 255.0));
  return static_cast<T>(value);
}

}  // namespace

template <typename T>
std::vector<T> resized(const T* image, std::int64_t height, std::int64_t width, std::int64_t channels,
                       std::int64_t side) {
  const std::int64_t square = std::min(height, width), top = (height - square) / 2, left = (width - square) / 2;
  const std::vector<Taps> taps = taps_of(square, side);
  std::vector<double> wide(static_cast<std::size_t>(square * side * channels));  // [square, side, channels]
  for (std::int64_t row = 0; row < square; ++row) {
    const T* const from = image + ((row + top) * width + left) * channels;
    double* to = wide.data() + row * side * channels;
    for (const Taps& tap : taps) {
      for (std::int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (std::size_t k = 0; k < tap.weights.size(); ++k)
          sum += tap.weights[k] * static_cast<double>(from[(tap.first + static_cast<std::int64_t>(k)) * channels + c]);
        *to++ = sum;
      }
    }
  }
  std::vector<T> result;
  result.reserve(static_cast<std::size_t>(side * side * channels));
  for (const Taps& tap : taps) {
    for (std::int64_t i = 0; i < side * channels; ++i) {
      double sum = 0;
      for (std::size_t k = 0; k < tap.weights.size(); ++k)
        sum += tap.weights[k] *
               wide[static_cast<std::size_t>((tap.first + static_cast<std::int64_t>(k)) * side * channels + i)];
      result.push_back(rounded_to<T>(sum));
    }
  }
  return result;
}

template std::vector<std::uint8_t> resized(const std::uint8_t*, std::int64_t, std::int64_t, std::int64_t, std::int64_t);
template std::vector<float> resized(const float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t);

}  // namespace norma
