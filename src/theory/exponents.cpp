// How predictions go with depth.
#include <cmath>
#include <limits>
#include <utility>

#include "norma/theory/predict.h"

namespace norma {

double log_slope(const std::vector<double>& x, const std::vector<double>& y) {
  NORMA_ASSERT(x.size() == y.size() && x.size() >= 2);
  const double n = static_cast<double>(x.size());
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] > 0) || !(y[i] > 0)) return std::numeric_limits<double>::quiet_NaN();
    const double a = std::log(x[i]), b = std::log(y[i]);
    sx += a;
    sy += b;
    sxx += a * a;
    sxy += a * b;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

std::vector<double> closing_gradients(const Prediction& prediction) {
  std::vector<double> all;
  for (const BranchTheory& branch : prediction.branches) {
    if (branch.kind == prediction.closing) all.push_back(branch.weight_gradient);
  }
  return all;
}

Exponents exponents_of(const std::vector<Prediction>& by_depth) {
  std::vector<double> n, rms, first, last, amplification;
  for (const Prediction& one : by_depth) {
    const std::vector<double> gradients = closing_gradients(one);
    n.push_back(static_cast<double>(one.layers));
    rms.push_back(one.streams.back().rms);
    first.push_back(gradients.empty() ? 0 : gradients.front());
    last.push_back(gradients.empty() ? 0 : gradients.back());
    amplification.push_back(one.amplification);
  }
  return {.stream_rms = log_slope(n, rms),
          .last_gradient = log_slope(n, last),
          .first_gradient = log_slope(n, first),
          .amplification = log_slope(n, amplification)};
}

}  // namespace norma
