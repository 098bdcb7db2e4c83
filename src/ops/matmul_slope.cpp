#include "norma/ops/matmul_slope.h"

#include <array>

#include "norma/graph/graph.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"
#include "ops/check.h"

namespace norma {

std::string MatMulSlope::attributes() const {
  const std::string sums = lines_ > 0 ? fmt::format(" lines={}", lines_) : "";
  return fmt::format("{} {}{}", product().attributes(), name_of(activation_), sums);
}

// Sums are wide.
void MatMulSlope::choose(Widths& widths) const {
  widths.all(true);
  if (lines_ > 0) widths.out[1] = false;
}

std::vector<Type> MatMulSlope::infer(std::span<const Type> in) const {
  check_count(in.size(), 3);
  std::vector<Type> out = product().infer(in.first(2));
  check_type("what the activation was given", in[2], out[0]);
  if (lines_ > 0) out.push_back({{lines_, out[0].shape.channels()}, out[0].dtype});
  return out;
}

Wires MatMulSlope::reference(std::span<const Wire> in) const {
  const Wire dz = activate_backward(in[2], in[2], matmul_rows(in[0], in[1], weight_), activation_);
  if (lines_ == 0) return {dz};
  const std::int64_t width = dz.shape().channels();
  return {dz, pad(reshape(sum_to(dz, {width}), {1, width}), 0, 0, lines_)};
}

Cost MatMulSlope::cost(std::span<const Type> in, std::span<const Type> out) const {
  const std::array passed = {in[2], out[0]};
  Cost cost = product().cost(in.first(2), out.first(1));
  cost.flops += ActivationBackward(activation_).cost(passed, out.first(1)).flops;
  if (lines_ > 0) cost.flops += static_cast<double>(out[0].shape.elements());
  cost.bytes = traffic(in, out);
  return cost;
}

Wire matmul_slope(Wire dy, Wire weight, Wire z, Activation activation, Transpose transpose_weight) {
  const Wire in[] = {dy, weight, z};
  return dy.graph().apply(std::make_shared<MatMulSlope>(activation, transpose_weight), in)[0];
}

}  // namespace norma
