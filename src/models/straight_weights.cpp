#include "models/straight_weights.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace norma {
namespace {

template <typename At>
void orthogonalise(std::size_t vectors, std::size_t elements, double length, At at) {
  for (std::size_t i = 0; i < vectors; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      double dot = 0;
      for (std::size_t e = 0; e < elements; ++e) dot += static_cast<double>(at(i, e)) * at(j, e);
      const float share = static_cast<float>(dot / (length * length));
      for (std::size_t e = 0; e < elements; ++e) at(i, e) -= share * at(j, e);
    }
    double square = 0;
    for (std::size_t e = 0; e < elements; ++e) square += static_cast<double>(at(i, e)) * at(i, e);
    const float factor = static_cast<float>(length / std::sqrt(square));
    for (std::size_t e = 0; e < elements; ++e) at(i, e) *= factor;
  }
}

}  // namespace

void straighten(Session& session, const ParameterSpec& spec, int member) {
  const Handle tensor = session.handle(spec.name);
  const std::size_t columns = static_cast<std::size_t>(tensor.type().shape.channels());
  std::vector<float> weight = session.read<float>(tensor, member);
  const std::size_t rows = weight.size() / columns;
  std::vector<ColumnBlock> blocks = spec.blocks;
  if (blocks.empty()) blocks.push_back({.columns = static_cast<std::int64_t>(columns)});
  std::size_t first = 0;
  for (const ColumnBlock& packed : blocks) {
    const double deviation = spec.init.value * packed.gain;
    const std::size_t block = static_cast<std::size_t>(packed.columns);
    const auto at = [&, first](std::size_t vector, std::size_t element) -> float& {
      return rows <= block ? weight[vector * columns + first + element] : weight[element * columns + first + vector];
    };
    const std::size_t vectors = std::min(rows, block), elements = std::max(rows, block);
    orthogonalise(vectors, elements, deviation * std::sqrt(static_cast<double>(elements)), at);
    first += block;
  }
  session.write<float>(tensor, weight, member);
}

}  // namespace norma
