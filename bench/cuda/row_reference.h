// Row norms and their derivatives in double, from their definitions, one row at a time. Shares nothing with the
// kernels.
#pragma once

#include <vector>

#include "bench/cuda/row_case.h"

namespace norma::bench {

struct RowForwardReference {
  std::vector<double> y;
  double rstd = 0, mean = 0;
};
RowForwardReference reference_forward(const RowShape& shape, const std::vector<double>& x,
                                      const std::vector<double>& gain, const std::vector<double>& bias);

// dx without residuals, and what the row adds to dgain ([width] or [1]).
struct RowBackwardReference {
  std::vector<double> dx, dgain;
};
RowBackwardReference reference_backward(const RowShape& shape, const std::vector<double>& x,
                                        const std::vector<double>& dy, const std::vector<double>& gain);

}  // namespace norma::bench
