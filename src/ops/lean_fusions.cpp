// linear_slope: what is made again for the backward pass, and what reads it, in one op.
#include <array>

#include "norma/ops/fusions.h"
#include "norma/ops/linear.h"
#include "norma/ops/linear_slope.h"
#include "norma/ops/matmul_slope.h"

namespace norma {
namespace {

// A hidden layer that is made again and the gradient that meets its activation's derivative -> one op in the place of
// the latter, of which nothing but the layer's output and the gradient pass through memory. Only where both have
// kernels of our own, whose bits the op keeps (src/ops/cuda/hopper_product.h): bf16, and relu is the library's.
bool remade_slope(Rewriter& rewriter, int index) {
  constexpr std::int64_t kDeepest = 1024;  // as for a product with a derivative alone
  const auto* slope = rewriter.as<MatMulSlope>(index);
  if (slope == nullptr || slope->activation() == Activation::relu) return false;
  const Transpose turned = slope->product().transpose_b();
  const std::vector<int> in = rewriter.node(index).inputs;
  const int at = rewriter.producer(in[2]), dz = rewriter.node(index).outputs[0];
  const auto* layer = rewriter.as<Linear>(at);
  if (layer == nullptr || !rewriter.node(at).again || layer->activation() != slope->activation()) return false;
  const std::vector<int> made = rewriter.node(at).outputs;
  const Type& dy = rewriter.graph().value(in[0]).type;
  if (turned != Transpose::yes || dy.dtype != DType::bf16 || dy.shape.channels() > kDeepest) return false;
  if (rewriter.graph().value(in[2]).type.dtype != DType::bf16) return false;
  if (made[1] != in[2] || !rewriter.private_to(in[2], index)) return false;
  if (!rewriter.unread_before(std::array{made[0]}, index, at)) return false;
  std::vector<int> inputs = {in[0], in[1]};
  inputs.insert(inputs.end(), rewriter.node(at).inputs.begin(), rewriter.node(at).inputs.end());
  auto fused = std::make_shared<LinearSlope>(layer->has_bias(), layer->activation(), turned);
  rewriter.replace(index, std::array{at}, std::move(fused), inputs, {dz, made[0]});
  return true;
}

}  // namespace

std::vector<Rewrite> lean_fusions() { return {{"linear_slope", remade_slope}}; }

}  // namespace norma
