#include "norma/models/parameters.h"

#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/core/side_by_side.h"

namespace norma {
namespace {

// The gain of each column.
std::vector<double> column_gains(const ParameterSpec& spec, std::size_t width) {
  std::vector<double> gains;
  for (const ColumnBlock& block : spec.blocks)
    gains.insert(gains.end(), static_cast<std::size_t>(block.columns), block.gain);
  if (gains.empty()) gains.assign(width, 1);
  NORMA_ASSERT(gains.size() == width);
  return gains;
}

template <typename T>
void make_unit(std::span<T> target, std::size_t width, UnitVectors unit) {
  const std::size_t rows = target.size() / width;
  const auto scale = [&](std::size_t first, std::size_t count, std::size_t stride) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += std::pow(static_cast<double>(target[first + i * stride]), 2);
    const double factor = sum > 0 ? 1 / std::sqrt(sum) : 0;
    for (std::size_t i = 0; i < count; ++i)
      target[first + i * stride] = static_cast<T>(static_cast<double>(target[first + i * stride]) * factor);
  };
  if (unit == UnitVectors::rows) {
    for (std::size_t row = 0; row < rows; ++row) scale(row * width, width, 1);
  } else {
    for (std::size_t column = 0; column < width; ++column) scale(column, rows, width);
  }
}

template <typename T>
void fill(std::span<T> target, std::size_t width, const ParameterSpec& spec, std::uint64_t seed) {
  const RandomStream stream(seed, spec.name);
  const std::vector<double> gains = column_gains(spec, width);
  const auto put = [&](std::size_t i, double value) { target[i] = static_cast<T>(value * gains[i % width]); };
  const auto put_each = [&](const auto& value) {
    for (std::size_t i = 0; i < target.size(); ++i) put(i, value(i));
  };
  const double scale = spec.init.value;
  switch (spec.init.kind) {
    case Init::Kind::constant: put_each([&](std::size_t) { return scale; }); break;
    case Init::Kind::normal:
      stream.each_normal(target.size(), [&](std::size_t i, double normal) { put(i, scale * normal); });
      break;
    case Init::Kind::uniform: put_each([&](std::size_t i) { return scale * (2 * stream.uniform(i) - 1); }); break;
    case Init::Kind::values: put_each([&](std::size_t i) { return spec.init.values[i]; }); break;
  }
  if (spec.unit != UnitVectors::none) make_unit(target, width, spec.unit);
}

}  // namespace

Init Init::xavier_normal(std::int64_t fan_in, std::int64_t fan_out, double gain) {
  return normal(gain * std::sqrt(2.0 / static_cast<double>(fan_in + fan_out)));
}

Wire Parameters::make(const Shape& shape, ParameterSpec spec) {
  NORMA_ASSERT(spec.init.kind != Init::Kind::values ||
               static_cast<std::int64_t>(spec.init.values.size()) == shape.elements());
  const Wire wire = graph_.parameter(spec.name, {shape, dtype_});
  spec.name = wire.name();
  specs_.push_back(std::move(spec));
  return wire;
}

Wire Parameters::share(const Shape& shape, ParameterSpec spec) {
  const Wire known = graph_.find(graph_.full_name(spec.name));
  return known && known.type() == Type{shape, dtype_} ? known : make(shape, std::move(spec));
}

Wire Parameters::keep(const Shape& shape, ParameterSpec spec) {
  if (const Wire known = graph_.find(graph_.full_name(spec.name))) return known;
  const Wire wire = graph_.state(spec.name, {shape, dtype_});
  spec.name = wire.name();
  kept_.push_back(std::move(spec));
  return wire;
}

namespace {

// Into all of these members.
void draw_into(Session& session, const std::vector<ParameterSpec>& specs, std::uint64_t seed,
               std::span<const int> members) {
  std::mutex one_at_a_time;  // writes; what takes long is to draw
  const auto draw = [&](std::size_t index) {
    const ParameterSpec& spec = specs[index];
    const Handle tensor = session.handle(spec.name);
    const auto width = static_cast<std::size_t>(tensor.type().shape.channels());
    const auto fill_all = [&]<typename T>(std::vector<T> values) {
      fill(std::span<T>(values), width, spec, seed);
      const std::lock_guard lock(one_at_a_time);
      for (const int member : members) session.write<T>(tensor, values, member);
    };
    if (tensor.type().dtype == DType::f32) {
      fill_all(std::vector<float>(tensor.elements()));
    } else {
      fill_all(std::vector<double>(tensor.elements()));
    }
  };
  constexpr std::size_t kWorthThreads = 1 << 20;  // elements
  std::size_t elements = 0;
  for (const ParameterSpec& spec : specs) elements += session.handle(spec.name).elements();
  side_by_side(specs.size(), elements < kWorthThreads ? 1 : session.threads(), draw);
}

}  // namespace

void initialise(Session& session, const std::vector<ParameterSpec>& specs, std::uint64_t seed, int member) {
  draw_into(session, specs, seed, std::span(&member, 1));
}

void initialise(Session& session, const std::vector<ParameterSpec>& specs, std::span<const std::uint64_t> seeds) {
  std::map<std::uint64_t, std::vector<int>> members;
  for (std::size_t i = 0; i < seeds.size(); ++i) members[seeds[i]].push_back(static_cast<int>(i));
  for (const auto& [seed, of_seed] : members) draw_into(session, specs, seed, of_seed);
}

}  // namespace norma
