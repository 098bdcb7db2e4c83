#include "norma/lab/singular_values.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "norma/core/error.h"

namespace norma {

std::vector<double> singular_values(std::vector<double> matrix, std::size_t n) {
  NORMA_ASSERT(matrix.size() == n * n);
  constexpr int kMostSweeps = 60;
  constexpr double kOrthogonal = 1e-14;
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool rotated = false;
    for (std::size_t p = 0; p + 1 < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        double* const a = &matrix[p * n];
        double* const b = &matrix[q * n];
        double aa = 0, bb = 0, ab = 0;
        for (std::size_t i = 0; i < n; ++i) {
          aa += a[i] * a[i];
          bb += b[i] * b[i];
          ab += a[i] * b[i];
        }
        if (std::abs(ab) <= kOrthogonal * std::sqrt(aa * bb) || ab == 0) continue;
        rotated = true;
        const double zeta = (bb - aa) / (2 * ab);
        const double t = std::copysign(1 / (std::abs(zeta) + std::sqrt(1 + zeta * zeta)), zeta);
        const double c = 1 / std::sqrt(1 + t * t), s = c * t;
        for (std::size_t i = 0; i < n; ++i) {
          const double x = a[i];
          a[i] = c * x - s * b[i];
          b[i] = s * x + c * b[i];
        }
      }
    }
    if (!rotated) break;
  }
  std::vector<double> values;
  for (std::size_t row = 0; row < n; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += matrix[row * n + i] * matrix[row * n + i];
    values.push_back(std::sqrt(sum));
  }
  std::sort(values.begin(), values.end(), std::greater<>());
  return values;
}

}  // namespace norma
