#include "norma/core/share.h"

#include <algorithm>
#include <cmath>

#include "norma/core/error.h"

namespace norma {

ShareInterval wilson_interval(const RightShare& share, double z) {
  NORMA_ASSERT(share.records > 0 && share.value >= 0 && share.value <= 1);
  const double p = share.value, n = share.records, shrunk = 1 + z * z / n;
  const double middle = (p + z * z / (2 * n)) / shrunk;
  const double half = z / shrunk * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {std::max(0.0, std::min(p, middle - half)), std::min(1.0, std::max(p, middle + half))};
}

}  // namespace norma
