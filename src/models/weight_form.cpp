#include "norma/models/weight_form.h"

#include <cmath>

#include "norma/core/error.h"
#include "norma/norms/channel.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"
#include "norma/ops/reduce.h"
#include "norma/ops/stop_gradient.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

constexpr double kStandardEps = 1e-4;      // Brock et al.; of n times the variance, which begins near 1
constexpr double kShortestColumn = 1e-24;  // its square: a column of zeros stays one

Wire unit_vector(Wire x) { return x * rsqrt(sum_all(square(x)) + kShortestColumn); }

// Directions count as given where the gradient is taken, as in the paper: that of u^T W v by W is u v^T.
Wire spectral(Wire weight, const ParameterSpec& gain) {
  const Shape shape = weight.shape();
  const std::int64_t outputs = shape.channels(), inputs = shape.elements() / outputs;
  const Wire matrix = reshape(weight, {inputs, outputs}), still = stop_gradient(matrix);
  Wire u = weight.graph().fill({{outputs, 1}, weight.dtype()}, 1), v;
  for (int i = 0; i < kPowerIterations; ++i) {
    v = unit_vector(matmul(still, u));
    u = unit_vector(matmul(still, v, Transpose::yes));
  }
  const Wire largest = reshape(matmul(stop_gradient(v), matmul(matrix, stop_gradient(u)), Transpose::yes), {1});
  Wires factors;
  const auto add = [&](std::int64_t columns, double factor) {
    if (factor == 0) fail("weights that start at 0 have no largest singular value to divide by");
    factors.push_back(weight.graph().fill({{columns}, weight.dtype()}, factor));
  };
  for (const ColumnBlock& block : gain.blocks) add(block.columns, gain.init.value * block.gain);
  if (factors.empty()) add(outputs, gain.init.value);
  return weight * ((factors.size() == 1 ? factors[0] : concat_last(factors)) / largest);
}

}  // namespace

FormedStart formed_start(WeightForm form, std::int64_t inputs, double deviation, std::optional<double> given,
                         double factor) {
  const double length = std::sqrt(static_cast<double>(inputs));
  switch (form) {
    case WeightForm::plain: return {given.value_or(deviation) * factor, 1};
    case WeightForm::standardised: return {deviation, factor * (given ? *given * length : 1)};
    case WeightForm::spectral: return {deviation, factor};
    case WeightForm::weight_norm: return {deviation, factor * given.value_or(deviation) * length};
  }
  return {};
}

Wire formed(Parameters& parameters, Wire weight, WeightForm form, ParameterSpec gain) {
  if (form == WeightForm::plain) return weight;
  const Shape shape = weight.shape();
  const std::int64_t outputs = shape.channels(), inputs = shape.elements() / outputs;
  const double n = static_cast<double>(inputs);
  if (form == WeightForm::spectral) return spectral(weight, gain);
  gain.name = "weight_gain";
  const Wire by = parameters.share({outputs}, std::move(gain));
  const Wire matrix = reshape(weight, {inputs, outputs});
  if (form == WeightForm::weight_norm) {
    const Wire squares = sum_to(square(matrix), {1, outputs});
    return reshape(matrix * (rsqrt(squares + kShortestColumn) * by), shape);
  }
  // Statistics of columns over rows are those of BatchNorm.
  return reshape(batch_norm(matrix, by * (1 / std::sqrt(n)), {}, {}, kStandardEps / n), shape);
}

}  // namespace norma
