// What this machine offers: cores, cache, instruction set.
#pragma once

#include <cstdint>
#include <string>

namespace norma {

struct Machine {
  int cores = 1;                      // this process may use
  std::int64_t last_level_cache = 0;  // bytes
  std::string instruction_set;        // the one chosen: "AVX3", "AVX2", ...
};

// Read once. NORMA_MAX_ISA=avx2 or =baseline holds the choice of SIMD kernels down, for tests and bug reports.
const Machine& machine();

}  // namespace norma
