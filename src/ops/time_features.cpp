#include "norma/ops/time_features.h"

#include <cmath>
#include <vector>

#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

template <typename T>
Wire frequencies(Graph& graph, std::string_view name, std::int64_t half, double longest) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < half; ++i)
    values.push_back(static_cast<T>(std::exp(-std::log(longest) * static_cast<double>(i) / static_cast<double>(half))));
  return graph.constant<T>(name, {half}, values);
}

}  // namespace

Wire time_features(Wire t, std::int64_t width, std::string_view name, double longest) {
  if (t.shape().rank() != 1)
    fail("time_features: needs one timestep for each sample, [batch], not {}", t.shape().str());
  if (width < 2) fail("time_features: a width of {}; expected at least 2", width);
  Graph& graph = t.graph();
  const std::int64_t half = width / 2, batch = t.shape()[0];
  const Wire rates = t.dtype() == DType::f64 ? frequencies<double>(graph, name, half, longest)
                                             : frequencies<float>(graph, name, half, longest);
  const Wire angles = reshape(t, {batch, 1}) * rates;
  const Wire parts[] = {cos(angles), sin(angles)};
  const Wire features = concat_last(parts);
  return width % 2 == 0 ? features : pad(features, -1, 0, width);
}

}  // namespace norma
