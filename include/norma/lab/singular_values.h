// Singular values of a square matrix by one-sided Jacobi rotations (Hestenes 1958): small ones keep their relative
// accuracy, which squaring the matrix would lose.
#pragma once

#include <cstddef>
#include <vector>

namespace norma {

// `matrix` is [n, n] in row order. Largest first.
std::vector<double> singular_values(std::vector<double> matrix, std::size_t n);

}  // namespace norma
