#include "norma/ops/neighbour_affine.h"

#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/neighbours.h"
#include "ops/check.h"
#include "ops/neighbour_rows.h"

namespace norma {

std::string NeighbourAffine::attributes() const {
  const char* scales = left_ && right_ ? "both" : left_ ? "left" : right_ ? "right" : "plain";
  return activation_ == Activation::none ? scales : fmt::format("{} {}", scales, name_of(activation_));
}

std::vector<Type> NeighbourAffine::infer(std::span<const Type> in) const {
  check_count(in.size(), 3u + (left_ ? 1 : 0) + (right_ ? 1 : 0));
  const std::span<const Type> summed = in.first(in.size() - 1);
  const Type out = left_ || right_ ? NeighbourScaled(left_, right_).infer(summed)[0] : NeighbourSum().infer(summed)[0];
  check_type("the bias", in.back(), {{out.shape.elements() / out.shape[0]}, out.dtype});
  return activation_ == Activation::none ? std::vector<Type>{out} : std::vector<Type>{out, out};
}

Wires NeighbourAffine::reference(std::span<const Wire> in) const {
  const Wire left = left_ ? in[2] : Wire(), right = right_ ? in[left_ ? 3 : 2] : Wire();
  const Wire z = neighbour_sum(in[0], in[1], left, right) + in.back();
  if (activation_ == Activation::none) return {z};
  const Wire only[] = {z};
  return {ActivationOp(activation_).reference(only)[0], z};
}

Cost NeighbourAffine::cost(std::span<const Type> in, std::span<const Type> out) const {
  const std::span<const Type> summed = in.first(in.size() - 1);
  Cost cost = left_ || right_ ? NeighbourScaled(left_, right_).cost(summed, out.first(1))
                              : NeighbourSum().cost(summed, out.first(1));
  cost.flops += static_cast<double>(out[0].shape.elements());
  cost.bytes = traffic(in, out.first(1));
  return cost;
}

void NeighbourAffine::choose(Widths& widths) const {
  const bool x = widths.in[0];
  widths.all(false);
  widths.in[0] = x;
  widths.out.assign(widths.out.size(), x);
}

CpuKernel cpu_kernel(const NeighbourAffine& op, Types in, Types) {
  return neighbour_kernel(in,
                          {.left = op.left(), .right = op.right(), .bias = op.bias(), .activation = op.activation()});
}

}  // namespace norma
