// What the rows of each segment come to, such as the nodes of each graph of a batch: sums, means and largest numbers.
#pragma once

#include "norma/graph/op.h"

namespace norma {

enum class Segmented { sum, mean, max };

// x[rows, ...], ids i32[rows] from 0 to segments - 1, sorted -> y[segments, ...] and, of the largest, which row it was,
// i32 of y's shape: of equal ones the first. A segment without rows has 0 (and the number behind the last row). Rows of
// the id `segments`, behind all others, are left out and get no gradient.
class SegmentReduce final : public Op {
 public:
  SegmentReduce(Segmented kind, std::int64_t segments) : kind_(kind), segments_(segments) {}
  Segmented kind() const { return kind_; }
  std::int64_t segments() const { return segments_; }

  std::string_view name() const override { return "segment_reduce"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool optional_output(int out) const override { return out == 1; }

 private:
  Segmented kind_;
  std::int64_t segments_;
};

Wire segment_reduce(Segmented kind, Wire x, Wire ids, std::int64_t segments);
// y[row] = x[ids[row]]: what a segment came to, for each of its rows; 0 where the id is none. The transpose of the sum.
Wire segment_spread(Wire x, Wire ids);

}  // namespace norma
