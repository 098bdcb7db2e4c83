// Whether a large output goes around the cache.
#pragma once

#include "norma/core/arena.h"
#include "norma/core/machine.h"
#include "norma/core/shape.h"

namespace norma {

enum class Stores { plain, streaming };

// Streaming pays when nobody could find the output in cache anyway. It needs whole, aligned vectors in every row.
inline Stores choose_stores(const Type& out) {
  const std::int64_t row_bytes = out.shape.channels() * static_cast<std::int64_t>(size_of(out.dtype));
  return out.bytes() > 2 * machine().last_level_cache && row_bytes % kArenaAlignment == 0 ? Stores::streaming
                                                                                          : Stores::plain;
}

}  // namespace norma
