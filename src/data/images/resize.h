// Images of any size brought to a square of one: the largest square in the middle, scaled.
#pragma once

#include <cstdint>
#include <vector>

namespace norma {

// `image` is [height, width, channels]. Scaling weighs neighbours by a triangle that is as wide as a pixel of the
// result, so that making an image smaller averages and making it larger interpolates.
template <typename T>
std::vector<T> resized(const T* image, std::int64_t height, std::int64_t width, std::int64_t channels,
                       std::int64_t side);

extern template std::vector<std::uint8_t> resized(const std::uint8_t*, std::int64_t, std::int64_t, std::int64_t,
                                                  std::int64_t);
extern template std::vector<float> resized(const float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t);

}  // namespace norma
