// What this machine can do at most: copy bandwidth far outside and inside the cache, and the rate of large products.
#pragma once

#include <cstddef>
#include <string>

#include "bench/report.h"

namespace norma {
class Team;
}

namespace norma::bench {

struct Options {
  double seconds = 0.5;    // per measurement
  int threads = 0;         // 0: all cores
  std::string match = {};  // only what has this in its name

  bool wants(const std::string& name) const { return name.find(match) != std::string::npos; }
};

// memcpy by all threads, each its own part.
void copy_in_parallel(Team& team, void* to, const void* from, std::size_t bytes);

// Sets copy_gbps (tensors far larger than the cache), cache_copy_gbps (8 MiB tensors) and sgemm_gflops, over all cores,
// and sgemm_core_gflops for one core.
void measure_limits(Report& report, const Options& options);

}  // namespace norma::bench
