// What probes read off wires in one pass.
#pragma once

#include <functional>

#include "norma/graph/op.h"

namespace norma {

// Where there are non-finite elements the others are not finite either: a probe never hides them.
struct Statistics {
  double mean = 0;
  double rms = 0;
  double max_abs = 0;
  double non_finite = 0;  // how many elements
};

// x1, x2, ... -> [tiles, 4]: sum, sum of squares, largest magnitude and non-finite elements of every tile of every
// input. Tiles are put together on the host, so that no thread waits for the others. No gradient.
class StatisticsOp final : public Op {
 public:
  std::string_view name() const override { return "statistics"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  CpuKernel cpu(std::span<const Type> in, std::span<const Type> out) const override;
};

Wire statistics(std::span<const Wire> watched);
Wire statistics(Wire x);

// Which part of the output belongs to input `which`.
struct StatisticsPlace {
  std::size_t first_tile = 0;
  std::size_t tiles = 0;
  double elements = 0;

  StatisticsPlace() = default;
  StatisticsPlace(std::span<const Wire> watched, std::size_t which);
  explicit StatisticsPlace(Wire x) : StatisticsPlace(std::span<const Wire>(&x, 1), 0) {}

  // `output(i)` is element i of the output.
  Statistics read(const std::function<double(std::size_t)>& output) const;
};

}  // namespace norma
