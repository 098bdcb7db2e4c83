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

// x -> f64[4]: sum, sum of squares, largest magnitude and number of non-finite elements. No gradient.
class StatisticsOp final : public Op {
 public:
  std::string_view name() const override { return "statistics"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }  // reads what there is
  void choose(Widths& widths) const override { widths.out = {false}; }
};

Wire statistics(Wire x);

constexpr int kMostStatistics = 16;  // tensors of one op

// in: x_k of any shape, out: for each what StatisticsOp has of it. One launch for several probes where a device pays
// for launches.
class StatisticsOfSeveral final : public Op {
 public:
  std::string_view name() const override { return "statistics_of_several"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.out.assign(widths.out.size(), false); }
};

Wires statistics_of_several(std::span<const Wire> x);

// The statistics of `elements` elements; `output(i)` is element i of what the op wrote.
Statistics read_statistics(std::int64_t elements, const std::function<double(std::size_t)>& output);

}  // namespace norma
