// How predictions go with depth.
#include <cmath>
#include <limits>
#include <utility>

#include "norma/schemes/theory.h"

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

namespace {

double ffn_gradient(const Theory& theory, bool first) {
  double found = 0;
  for (const BranchTheory& branch : theory.branches) {
    if (branch.kind != BranchTheory::Kind::ffn) continue;
    found = branch.weight_gradient;
    if (first) break;
  }
  return found;
}

// `run(depth)` gives the stack that begins and the one that ends the network.
template <typename Run>
Exponents fit(const std::vector<std::int64_t>& depths, Run run) {
  std::vector<double> n, rms, first, last, amplification;
  for (const std::int64_t depth : depths) {
    const auto [below, above] = run(depth);
    n.push_back(static_cast<double>(depth));
    rms.push_back(above.streams.back().rms);
    amplification.push_back(above.amplification);
    first.push_back(ffn_gradient(below, true));
    last.push_back(ffn_gradient(above, false));
  }
  return {.stream_rms = log_slope(n, rms),
          .last_gradient = log_slope(n, last),
          .first_gradient = log_slope(n, first),
          .amplification = log_slope(n, amplification)};
}

}  // namespace

Exponents fit_exponents(const Scheme& scheme, const BranchTables& branches, TheoryConfig config,
                        const std::vector<std::int64_t>& depths) {
  return fit(depths, [&](std::int64_t depth) {
    config.layers = depth;
    Theory theory = predict(scheme, branches, config);
    return std::pair{theory, theory};
  });
}

Exponents fit_exponents(const Scheme& scheme, const EncoderDecoderTables& branches, TheoryConfig config,
                        const std::vector<std::int64_t>& depths) {
  return fit(depths, [&](std::int64_t depth) {
    config.layers = depth;
    config.encoder_layers = 0;
    EncoderDecoderTheory both = predict(scheme, branches, config);
    return std::pair{std::move(both.encoder), std::move(both.decoder)};
  });
}

}  // namespace norma
