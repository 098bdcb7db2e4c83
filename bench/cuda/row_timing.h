// The CUDA kernels of row norms against the card's copy bandwidth.
#pragma once

#include <string>
#include <vector>

#include "bench/cuda/row_case.h"

namespace norma::bench {

struct RowTiming {
  std::string name;
  std::int64_t rows = 0, width = 0;
  double microseconds = 0;      // median
  double noise = 0;             // slowest quarter against the median
  double terabytes_per_second;  // of what must be read and written
  double share = 0;             // of the copy
  double target = 0;            // 0: none
};

struct RowTimings {
  double copy = 0;  // TB/s, read and written, 2 GiB to 2 GiB
  std::vector<RowTiming> results;
};

RowTimings time_row_norms();
std::string table_of(const RowTimings& timings);
std::string json_of(const RowTimings& timings, const std::string& commit);

}  // namespace norma::bench
