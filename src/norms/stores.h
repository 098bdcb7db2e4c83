// Whether a large output goes around the cache.
#pragma once

#include "device/cpu/cache_reach.h"
#include "norma/core/arena.h"
#include "norma/core/shape.h"

namespace norma {

enum class Stores { plain, streaming };

// Streaming needs whole, aligned vectors in every row.
inline bool streams_rows(const Type& type) {
  return type.shape.channels() * static_cast<std::int64_t>(size_of(type.dtype)) % kArenaAlignment == 0;
}

// Streaming pays when nobody could find the output in cache anyway.
inline Stores choose_stores(const Type& out) {
  return streams_rows(out) && outgrows_cache(out.bytes()) ? Stores::streaming : Stores::plain;
}

}  // namespace norma
