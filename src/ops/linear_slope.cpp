#include "norma/ops/linear_slope.h"

#include <array>

#include "norma/graph/graph.h"
#include "norma/ops/linear.h"
#include "norma/ops/matmul_slope.h"
#include "ops/check.h"

namespace norma {

std::string LinearSlope::attributes() const {
  return fmt::format("{}{}{}", bias_ ? "bias " : "", name_of(activation_),
                     gradient_weight_ == Transpose::yes ? " b^T" : "");
}

std::vector<Type> LinearSlope::infer(std::span<const Type> in) const {
  check_count(in.size(), bias_ ? 5 : 4);
  const Type &dy = in[0], &x = in[2];
  check_computes(dy);
  for (const Type& other : in.subspan(1)) check_same_dtype(dy, other);
  const Shape &v = in[1].shape, &w = in[3].shape;
  if (v.rank() != 2 || w.rank() != 2) fail("weights must be matrices but are {} and {}", v.str(), w.str());
  const bool turned = gradient_weight_ == Transpose::yes;
  const std::int64_t depth = v[turned ? 1 : 0], width = v[turned ? 0 : 1];
  if (dy.shape.channels() != depth) fail("the gradient has {} channels, not {}", dy.shape.channels(), depth);
  if (x.shape.channels() != w[0])
    fail("the input has {} channels but the weight {} takes {}", x.shape.channels(), w.str(), w[0]);
  const Type out{x.shape.with(-1, w[1]), x.dtype};
  if (dy.shape.with(-1, width) != out.shape)
    fail("the gradient becomes {} but the layer's output is {}", dy.shape.with(-1, width).str(), out.shape.str());
  if (bias_) check_type("the bias", in[4], {{w[1]}, x.dtype});
  return {out, out};
}

Wires LinearSlope::reference(std::span<const Wire> in) const {
  const Wire z = linear(in[2], in[3], bias_ ? in[4] : Wire());
  const Wire y = activate(z, activation_);
  return {matmul_slope(in[0], in[1], activation_ == Activation::relu ? y : z, activation_, gradient_weight_), y};
}

Cost LinearSlope::cost(std::span<const Type> in, std::span<const Type> out) const {
  const std::array layer = {out[1], out[1]};
  const Cost made = Linear(bias_, activation_).cost(in.subspan(2), layer);
  const std::array slope = {in[0], in[1], out[0]};
  const Cost gradient = MatMulSlope(activation_, gradient_weight_).cost(slope, out.first(1));
  return {
      .flops = made.flops + gradient.flops, .bytes = traffic(in, out), .products = made.products + gradient.products};
}

Wires linear_slope(Wire dy, Wire gradient_weight, Wire x, Wire weight, Wire bias, Activation activation,
                   Transpose transpose_gradient_weight) {
  Wires in = {dy, gradient_weight, x, weight};
  if (bias) in.push_back(bias);
  return dy.graph().apply(std::make_shared<LinearSlope>(static_cast<bool>(bias), activation, transpose_gradient_weight),
                          in);
}

}  // namespace norma
