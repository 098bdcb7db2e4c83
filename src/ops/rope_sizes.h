// How a tensor is seen by the rotation of its positions.
#pragma once

#include "norma/ops/rope.h"

namespace norma {

struct RopeSizes {
  std::int64_t time = 0, channels = 0, rotated = 0, width = 0;  // channels of one time step
};

// Throws Error when x does not fit the options.
RopeSizes rope_sizes(const RopeOptions& options, const Shape& x);

}  // namespace norma
