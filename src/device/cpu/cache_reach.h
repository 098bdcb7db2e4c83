// How large an output may be so that its reader still finds it in cache: measured, because what a machine says about
// its cache is not what one process gets of it (a virtual machine may report the 260 MB of a whole socket).
#pragma once

#include <cstdint>

namespace norma {

// Whether an output of so many bytes is better streamed past the cache than left in it. Outputs below kNeverStreamed
// and outputs above twice the reported cache are decided at once; for those between, the first call in a process
// measures for some hundredths of a second. Only speed depends on the answer, never a number that a kernel computes.
bool outgrows_cache(std::int64_t bytes);

constexpr std::int64_t kNeverStreamed = std::int64_t{4} << 20;

// The smallest of the powers of two from kNeverStreamed up to `most` bytes at which writing past the cache and reading
// back takes less time than through the cache; `most` when there is none.
std::int64_t measure_cache_reach(std::int64_t most);

}  // namespace norma
