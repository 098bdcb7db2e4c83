// The first element of a tensor that is not finite.
#pragma once

#include <cstdint>

#include "norma/core/shape.h"
#include "norma/device/cuda/kernel.h"

namespace norma::cuda {

// Enqueues; `found` on the device becomes the index of the first element that is not finite, or kAllFinite.
constexpr std::int64_t kAllFinite = 0x7f7f7f7f7f7f7f7f;
int find_non_finite(const std::byte* data, const Type& type, std::int64_t* found, Stream stream);

}  // namespace norma::cuda
