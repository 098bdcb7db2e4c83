#include "norma/ops/matmul_slope.h"

#include <array>

#include "norma/graph/graph.h"
#include "ops/check.h"

namespace norma {

std::string MatMulSlope::attributes() const {
  return fmt::format("{} {}", product().attributes(), name_of(activation_));
}

std::vector<Type> MatMulSlope::infer(std::span<const Type> in) const {
  check_count(in.size(), 3);
  const std::vector<Type> out = product().infer(in.first(2));
  check_type("what the activation was given", in[2], out[0]);
  return out;
}

Wires MatMulSlope::reference(std::span<const Wire> in) const {
  return {activate_backward(in[2], in[2], matmul_rows(in[0], in[1], weight_), activation_)};
}

Cost MatMulSlope::cost(std::span<const Type> in, std::span<const Type> out) const {
  const std::array passed = {in[2], out[0]};
  Cost cost = product().cost(in.first(2), out);
  cost.flops += ActivationBackward(activation_).cost(passed, out).flops;
  cost.bytes = traffic(in, out);
  return cost;
}

Wire matmul_slope(Wire dy, Wire weight, Wire z, Activation activation, Transpose transpose_weight) {
  const Wire in[] = {dy, weight, z};
  return dy.graph().apply(std::make_shared<MatMulSlope>(activation, transpose_weight), in)[0];
}

}  // namespace norma
