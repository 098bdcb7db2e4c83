#include "norma/ops/weight_gradients.h"

#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/ops/matmul.h"
#include "norma/ops/reduce.h"

namespace norma {
namespace {

MatMul one_gradient() { return {Product::reduce_rows, Transpose::yes, Transpose::no}; }

}  // namespace

std::string WeightGradients::attributes() const {
  std::string text = "bias=";
  for (const bool has : has_bias_) text += has ? '1' : '0';
  return text;
}

std::vector<Type> WeightGradients::infer(std::span<const Type> in) const {
  if (in.empty() || in.size() != 2 * has_bias_.size() || has_bias_.size() > kMostWeightGradients)
    fail("takes {} pairs of tensors, at most {}, not {} tensors", has_bias_.size(), kMostWeightGradients, in.size());
  std::vector<Type> out;
  for (std::size_t k = 0; k < in.size(); k += 2) out.push_back(one_gradient().infer(in.subspan(k, 2))[0]);
  for (std::size_t k = 0; k < has_bias_.size(); ++k) {
    if (has_bias_[k]) out.push_back({{out[k].shape[1]}, out[k].dtype});
  }
  return out;
}

Wires WeightGradients::reference(std::span<const Wire> in) const {
  Wires gradients;
  for (std::size_t k = 0; k < in.size(); k += 2) gradients.push_back(matmul_reduce_rows(in[k], in[k + 1]));
  for (std::size_t k = 0; k < has_bias_.size(); ++k) {
    if (has_bias_[k]) gradients.push_back(sum_to(in[2 * k + 1], {in[2 * k + 1].shape().channels()}));
  }
  return gradients;
}

Cost WeightGradients::cost(std::span<const Type> in, std::span<const Type> out) const {
  Cost cost{.bytes = traffic(in, out)};
  for (std::size_t k = 0; k < has_bias_.size(); ++k) {
    cost.products += one_gradient().cost(in.subspan(2 * k, 2), out.subspan(k, 1)).products;
    if (has_bias_[k]) cost.flops += static_cast<double>(in[2 * k + 1].shape.elements());
  }
  cost.flops += cost.products;
  return cost;
}

void WeightGradients::choose(Widths& widths) const {
  widths.in.assign(widths.in.size(), true);
  widths.out.assign(widths.out.size(), false);
}

Wires weight_gradients(std::span<const Wire> pairs, std::vector<bool> has_bias) {
  return pairs[0].graph().apply(std::make_shared<WeightGradients>(std::move(has_bias)), pairs);
}

}  // namespace norma
