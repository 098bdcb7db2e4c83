#include "bench/cuda/row_reference.h"

#include <cmath>

namespace norma::bench {
namespace {

struct Moments {
  double mean = 0, spread = 0;  // spread: variance, mean square, or sum of squares
};

Moments moments_of(const RowShape& shape, const std::vector<double>& x) {
  Moments result;
  const std::size_t counted = static_cast<std::size_t>(shape.counts());
  if (shape.centred()) {
    for (const double v : x) result.mean += v;
    result.mean /= static_cast<double>(x.size());
  }
  for (std::size_t i = 0; i < counted; ++i) result.spread += (x[i] - result.mean) * (x[i] - result.mean);
  if (shape.norm != RowNormName::scale) result.spread /= static_cast<double>(counted);
  return result;
}

double rstd_of(const RowShape& shape, const Moments& moments) {
  const double eps = shape.eps;
  if (shape.norm == RowNormName::scale) return 1 / std::max(std::sqrt(moments.spread), eps);
  return 1 / std::sqrt(moments.spread + eps);
}

double at_or(const std::vector<double>& v, std::size_t i, double otherwise) {
  return v.empty() ? otherwise : v[v.size() == 1 ? 0 : i];
}

}  // namespace

RowForwardReference reference_forward(const RowShape& shape, const std::vector<double>& x,
                                      const std::vector<double>& gain, const std::vector<double>& bias) {
  const Moments moments = moments_of(shape, x);
  RowForwardReference result{.y = std::vector<double>(x.size()), .rstd = rstd_of(shape, moments), .mean = moments.mean};
  for (std::size_t i = 0; i < x.size(); ++i) {
    result.y[i] = at_or(gain, i, 1) * (x[i] - moments.mean) * result.rstd + at_or(bias, i, 0);
  }
  return result;
}

// The chain rule through mean and spread, step by step.
RowBackwardReference reference_backward(const RowShape& shape, const std::vector<double>& x,
                                        const std::vector<double>& dy, const std::vector<double>& gain) {
  const Moments moments = moments_of(shape, x);
  const double r = rstd_of(shape, moments), width = static_cast<double>(x.size());
  const double counted = static_cast<double>(shape.counts());
  RowBackwardReference result{.dx = std::vector<double>(x.size()),
                              .dgain = std::vector<double>(shape.one_gain() ? 1 : x.size(), 0.0)};
  double dr = 0, dmean = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double g = at_or(gain, i, 1) * dy[i];
    dr += g * (x[i] - moments.mean);
    dmean -= g * r;
    result.dgain[shape.one_gain() ? 0 : i] += dy[i] * (x[i] - moments.mean) * r;
  }
  double dspread = 0;  // of 1 / sqrt(spread + eps), or of 1 / max(sqrt(spread), eps)
  if (shape.norm != RowNormName::scale || std::sqrt(moments.spread) > shape.eps) dspread = dr * -0.5 * r * r * r;
  const double share = shape.norm == RowNormName::scale ? 1 : 1 / counted;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double d = at_or(gain, i, 1) * dy[i] * r;
    if (static_cast<double>(i) < counted) d += dspread * 2 * (x[i] - moments.mean) * share;
    if (shape.centred()) d += dmean / width;
    result.dx[i] = d;
  }
  return result;
}

}  // namespace norma::bench
