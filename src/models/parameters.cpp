#include "norma/models/parameters.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "norma/core/error.h"
#include "norma/core/random.h"

namespace norma {
namespace {

template <typename T>
void fill(std::span<T> target, std::int64_t width, const ParameterSpec& spec, std::uint64_t seed) {
  const RandomStream stream(seed, spec.name);
  const std::size_t blocks = std::max<std::size_t>(1, spec.block_gains.size());
  const std::size_t block = static_cast<std::size_t>(width) / blocks;
  for (std::size_t i = 0; i < target.size(); ++i) {
    double value = spec.init.value;
    if (spec.init.kind == Init::Kind::normal) value *= stream.normal(i);
    if (spec.init.kind == Init::Kind::uniform) value *= 2 * stream.uniform(i) - 1;
    if (!spec.block_gains.empty()) value *= spec.block_gains[i % static_cast<std::size_t>(width) / block];
    target[i] = static_cast<T>(value);
  }
}

}  // namespace

Init Init::xavier_normal(std::int64_t fan_in, std::int64_t fan_out, double gain) {
  return normal(gain * std::sqrt(2.0 / static_cast<double>(fan_in + fan_out)));
}

Wire Parameters::make(std::string_view name, const Shape& shape, Init init, std::vector<double> block_gains) {
  NORMA_ASSERT(block_gains.empty() || shape.channels() % static_cast<std::int64_t>(block_gains.size()) == 0);
  const Wire wire = graph_.parameter(name, {shape, dtype_});
  specs_.push_back({wire.name(), init, std::move(block_gains)});
  return wire;
}

void Parameters::set_group(double lr, bool decay) {
  NORMA_ASSERT(!specs_.empty());
  specs_.back().lr = lr;
  specs_.back().decay = decay;
}

Wire Parameters::share(std::string_view name, const Shape& shape, Init init, std::vector<double> block_gains) {
  const Wire known = graph_.find(graph_.full_name(name));
  return known && known.type() == Type{shape, dtype_} ? known : make(name, shape, init, std::move(block_gains));
}

void initialise(Session& session, const std::vector<ParameterSpec>& specs, std::uint64_t seed, int member) {
  for (const ParameterSpec& spec : specs) {
    const Type& type = session.plan().slot(spec.name).type;
    if (type.dtype == DType::f32) {
      fill(session.tensor<float>(spec.name, member), type.shape.channels(), spec, seed);
    } else {
      fill(session.tensor<double>(spec.name, member), type.shape.channels(), spec, seed);
    }
  }
}

}  // namespace norma
