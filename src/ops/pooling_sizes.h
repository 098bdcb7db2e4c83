// The sizes of pooling, checked.
#pragma once

#include "norma/ops/pooling.h"

namespace norma {

struct PoolingSizes {
  std::int64_t batch, height, width, channels, out_height, out_width;

  // Throws Error where they do not fit.
  PoolingSizes(const PoolingOptions& options, const Shape& x);
  Shape y() const { return {batch, out_height, out_width, channels}; }
};

}  // namespace norma
