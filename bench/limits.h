// What this machine can do at most: copy bandwidth far outside and inside the cache, and the rate of large products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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

// Single ones: GB/s of copies of so many bytes, read plus written; GFLOP/s of the best of square products.
constexpr std::int64_t kCacheCopyBytes = std::int64_t{8} << 20;
double copy_limit(const Options& options, std::int64_t bytes);
double sgemm_limit(const Options& options, std::span<const std::int64_t> sizes);

}  // namespace norma::bench
