#include "norma/models/parameters.h"

#include <cmath>

#include "norma/core/error.h"
#include "norma/core/random.h"

namespace norma {
namespace {

template <typename T>
void fill(std::span<T> target, const ParameterSpec& spec, std::uint64_t seed) {
  const RandomStream stream(seed, spec.name);
  for (std::size_t i = 0; i < target.size(); ++i) {
    switch (spec.init.kind) {
      case Init::Kind::constant: target[i] = static_cast<T>(spec.init.value); break;
      case Init::Kind::normal: target[i] = static_cast<T>(spec.init.value * stream.normal(i)); break;
      case Init::Kind::uniform: target[i] = static_cast<T>(spec.init.value * (2 * stream.uniform(i) - 1)); break;
    }
  }
}

}  // namespace

Init Init::xavier_normal(std::int64_t fan_in, std::int64_t fan_out, double gain) {
  return normal(gain * std::sqrt(2.0 / static_cast<double>(fan_in + fan_out)));
}

Wire Parameters::make(std::string_view name, const Shape& shape, Init init) {
  const Wire wire = graph_.parameter(name, {shape, dtype_});
  specs_.push_back({wire.name(), init});
  return wire;
}

void initialise(Session& session, const std::vector<ParameterSpec>& specs, std::uint64_t seed, int member) {
  for (const ParameterSpec& spec : specs) {
    if (session.plan().slot(spec.name).type.dtype == DType::f32) {
      fill(session.tensor<float>(spec.name, member), spec, seed);
    } else {
      fill(session.tensor<double>(spec.name, member), spec, seed);
    }
  }
}

}  // namespace norma
