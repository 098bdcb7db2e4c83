// The CUDA kernels of row norms against a plain reference in double.
#pragma once

#include <cstdint>

namespace norma::bench {

enum class CheckExtent { whole, reduced };  // reduced: few small shapes, for a memory checker

// Prints each case that fails and a last line; returns the number of failures.
int check_row_norms(CheckExtent extent, std::uint64_t seed);

}  // namespace norma::bench
