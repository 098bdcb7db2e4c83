// CUDA calls that the host makes: what failed becomes an Error that says what was being done.
#pragma once

#include <string_view>

namespace norma::cuda {

// Throws Error unless `code` is cudaSuccess.
void check(int code, std::string_view doing);

}  // namespace norma::cuda
