#include "norma/ops/fusions.h"

#include <algorithm>
#include <array>

#include "norma/graph/sum.h"
#include "norma/ops/activation.h"
#include "norma/ops/attention.h"
#include "norma/ops/column_sums.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/linear.h"
#include "norma/ops/matmul.h"
#include "norma/ops/matmul_slope.h"
#include "norma/ops/neighbour_affine.h"
#include "norma/ops/neighbours.h"
#include "norma/ops/reduce.h"
#include "norma/ops/scaled_add.h"
#include "norma/ops/weight_gradients.h"
#include "ops/gather.h"
#include "ops/sum_fusions.h"

namespace norma {
namespace {

// act(linear(x)) -> linear with the activation inside; the value before it stays available.
bool linear_activation(Rewriter& rewriter, int index) {
  const auto* activation = rewriter.as<ActivationOp>(index);
  if (activation == nullptr) return false;
  const int z = rewriter.node(index).inputs[0], y = rewriter.node(index).outputs[0];
  const int at = rewriter.producer(z);
  const auto* linear = rewriter.as<Linear>(at);
  if (linear == nullptr || linear->activation() != Activation::none) return false;
  auto fused = std::make_shared<Linear>(linear->has_bias(), activation->activation());
  rewriter.replace(at, std::array{index}, std::move(fused), rewriter.node(at).inputs, {y, z});
  return true;
}

// cross_entropy(x W) -> the two fused in blocks; before differentiation, while nobody else reads the logits.
bool linear_cross_entropy(Rewriter& rewriter, int index) {
  const auto* loss = rewriter.as<CrossEntropy>(index);
  if (loss == nullptr) return false;
  const std::vector<int> in = rewriter.node(index).inputs, out = rewriter.node(index).outputs;
  const int at = rewriter.producer(in[0]);
  const auto* linear = rewriter.as<Linear>(at);
  if (linear == nullptr || linear->has_bias() || linear->activation() != Activation::none) return false;
  if (!rewriter.private_to(in[0], index)) return false;
  const std::vector<int> projection = rewriter.node(at).inputs;
  rewriter.replace(index, std::array{at}, std::make_shared<LinearCrossEntropy>(loss->options()),
                   {projection[0], projection[1], in[1], in[2]}, out);
  return true;
}

// The loss of a projection and its gradients -> one op in the place of the loss, if what the gradients are multiplied
// by is known there.
bool loss_gradient(Rewriter& rewriter, int index) {
  const auto* backward = rewriter.as<LinearCrossEntropyBackward>(index);
  if (backward == nullptr) return false;
  const std::vector<int> in = rewriter.node(index).inputs, gradients = rewriter.node(index).outputs;
  const int at = rewriter.producer(in[4]), dloss = in[5];
  if (rewriter.as<LinearCrossEntropy>(at) == nullptr || !rewriter.available_before(std::array{dloss}, at)) return false;
  const std::vector<int> forward = rewriter.node(at).inputs, out = rewriter.node(at).outputs;
  if (!std::equal(forward.begin(), forward.end(), in.begin())) return false;
  rewriter.replace(at, std::array{index}, std::make_shared<LinearCrossEntropyGradient>(backward->options()),
                   {in[0], in[1], in[2], in[3], dloss}, {out[0], out[1], gradients[0], gradients[1]});
  return true;
}

// The backward pass of attention whose forward pass is here gets its context, which the product after it keeps anyway.
bool attention_context(Rewriter& rewriter, int index) {
  const auto* backward = rewriter.as<AttentionBackward>(index);
  if (backward == nullptr || backward->context() == SavedContext::given) return false;
  std::vector<int> in = rewriter.node(index).inputs;
  const int forward = rewriter.producer(in[in.size() - 2]);
  if (rewriter.as<Attention>(forward) == nullptr) return false;
  const std::vector<int> read = rewriter.node(forward).inputs, made = rewriter.node(forward).outputs;
  if (made[1] != in[in.size() - 2] || !std::equal(read.begin(), read.end(), in.begin(), in.end() - 2)) return false;
  in.insert(in.end() - 2, made[0]);
  rewriter.replace(index, {},
                   std::make_shared<AttentionBackward>(backward->layout(), backward->options(), SavedContext::given),
                   std::move(in), rewriter.node(index).outputs);
  return true;
}

// A product that is multiplied by the derivative of an activation -> one op in the place of the latter.
bool product_slope(Rewriter& rewriter, int index) {
  const auto* backward = rewriter.as<ActivationBackward>(index);
  if (backward == nullptr) return false;
  const std::vector<int> in = rewriter.node(index).inputs, out = rewriter.node(index).outputs;
  const int at = rewriter.producer(in[1]);
  const auto* product = rewriter.as<MatMul>(at);
  if (product == nullptr || product->product() != Product::rows || product->accumulates()) return false;
  if (!rewriter.private_to(in[1], index)) return false;
  const std::vector<int> factors = rewriter.node(at).inputs;
  auto fused = std::make_shared<MatMulSlope>(backward->activation(), product->transpose_b());
  rewriter.replace(index, std::array{at}, std::move(fused), {factors[0], factors[1], in[0]}, out);
  return true;
}

// Whether it makes gradients by weights, each of which leaves most of a device idle.
bool makes_small_weight_gradients(const Rewriter& rewriter, int index) {
  constexpr std::int64_t kMostElements = 512 * 1024;
  if (rewriter.as<WeightGradients>(index) != nullptr) return true;
  const auto* product = rewriter.as<MatMul>(index);
  if (product == nullptr || product->product() != Product::reduce_rows || product->accumulates()) return false;
  const Node& node = rewriter.node(index);
  return node.backward && rewriter.graph().value(node.outputs[0]).type.shape.elements() <= kMostElements;
}

// Bias flags of what makes gradients by weights.
std::vector<bool> biases_of(const Rewriter& rewriter, int index) {
  const auto* several = rewriter.as<WeightGradients>(index);
  return several != nullptr ? several->has_bias() : std::vector<bool>{false};
}

// The sum over rows of a gradient that a weight's gradient reads too, close by: made there, if it is the larger factor.
bool weight_and_bias(Rewriter& rewriter, int index) {
  constexpr int kNear = 6;  // nodes
  if (!rewriter.alive(index) || rewriter.as<ColumnSums>(index) != nullptr || !sums_columns(rewriter, index))
    return false;
  const int gradient = rewriter.node(index).inputs[0], sum = rewriter.node(index).outputs[0];
  for (int at = std::max(0, index - kNear); at < std::min(rewriter.size(), index + kNear); ++at) {
    if (rewriter.as<MatMul>(at) == nullptr || !makes_small_weight_gradients(rewriter, at)) continue;
    const std::vector<int> factors = rewriter.node(at).inputs, made = rewriter.node(at).outputs;
    const Graph& graph = rewriter.graph();
    if (factors[1] != gradient ||
        graph.value(gradient).type.shape.channels() <= graph.value(factors[0]).type.shape.channels())
      continue;
    const int later = std::max(at, index), earlier = std::min(at, index);
    if (!rewriter.unread_before(rewriter.node(earlier).outputs, later, earlier)) return false;
    rewriter.replace(later, std::array{earlier}, std::make_shared<WeightGradients>(std::vector{true}), factors,
                     {made[0], sum});
    return true;
  }
  return false;
}

// Gradients by different weights -> one op in the place of the last, as for sums over rows above. Not across the
// backward pass of attention, which leaves room beside it: what comes before it is made meanwhile.
bool gather_weight_gradients(Rewriter& rewriter, int index) {
  constexpr int kFarthest = 48;                                  // nodes: about two layers
  constexpr std::int64_t kMostFactors = std::int64_t{40} << 20;  // elements
  if (!rewriter.alive(index) || !makes_small_weight_gradients(rewriter, index)) return false;
  const std::vector<int> own = rewriter.node(index).inputs, made = rewriter.node(index).outputs;
  for (int next = index + 1; next < std::min(rewriter.size(), index + kFarthest); ++next) {
    if (rewriter.as<AttentionBackward>(next) != nullptr) return false;
    if (!rewriter.alive(next) || !makes_small_weight_gradients(rewriter, next)) continue;
    const Node& other = rewriter.node(next);
    const std::vector<bool> own_biases = biases_of(rewriter, index), other_biases = biases_of(rewriter, next);
    const auto weights = static_cast<std::ptrdiff_t>(own_biases.size());
    const auto other_weights = static_cast<std::ptrdiff_t>(other_biases.size());
    std::vector<bool> biases = own_biases;
    biases.insert(biases.end(), other_biases.begin(), other_biases.end());
    std::vector<int> inputs = own, outputs(made.begin(), made.begin() + weights);
    inputs.insert(inputs.end(), other.inputs.begin(), other.inputs.end());
    outputs.insert(outputs.end(), other.outputs.begin(), other.outputs.begin() + other_weights);
    outputs.insert(outputs.end(), made.begin() + weights, made.end());
    outputs.insert(outputs.end(), other.outputs.begin() + other_weights, other.outputs.end());
    std::int64_t elements = 0;
    for (const int id : inputs) elements += rewriter.graph().value(id).type.shape.elements();
    if (biases.size() > kMostWeightGradients || elements > kMostFactors) return false;
    if (!rewriter.unread_before(made, next, index)) return false;
    rewriter.replace(next, std::array{index}, std::make_shared<WeightGradients>(std::move(biases)), std::move(inputs),
                     std::move(outputs));
    return true;
  }
  return false;
}

// a x + b y -> one pass.
bool fuse_scaled_add(Rewriter& rewriter, int index) {
  if (rewriter.as<Sum>(index) == nullptr || rewriter.node(index).inputs.size() != 2) return false;
  const std::vector<int> terms = rewriter.node(index).inputs, out = rewriter.node(index).outputs;
  std::optional<ScaledValue> scaled[2];
  std::vector<int> inputs = terms, removed;
  for (std::size_t k = 0; k < 2; ++k) {
    if (!rewriter.private_to(terms[k], index) || !(scaled[k] = find_scaled(rewriter, terms[k]))) continue;
    inputs[k] = scaled[k]->value;
    inputs.push_back(scaled[k]->scale);
    removed.push_back(scaled[k]->node);
  }
  if (removed.empty()) return false;
  auto fused = std::make_shared<ScaledAdd>(scaled[0].has_value(), scaled[1].has_value());
  rewriter.replace(index, removed, std::move(fused), std::move(inputs), out);
  return true;
}

// A sum over neighbours + a number for each channel -> one op.
bool neighbour_bias(Rewriter& rewriter, int index) {
  const auto* add = rewriter.as<BinaryOp>(index);
  if (add == nullptr || add->function() != Binary::add) return false;
  const std::vector<int> terms = rewriter.node(index).inputs, out = rewriter.node(index).outputs;
  const int at = rewriter.producer(terms[0]);
  const auto* scaled = rewriter.as<NeighbourScaled>(at);
  if ((scaled == nullptr && rewriter.as<NeighbourSum>(at) == nullptr) || !rewriter.private_to(terms[0], index))
    return false;
  const Graph& graph = rewriter.graph();
  const Shape &shape = graph.value(out[0]).type.shape, &bias = graph.value(terms[1]).type.shape;
  const Shape all{shape.elements() / shape[0]};
  if (bias != Shape{shape.channels()} || bias != all || graph.value(terms[0]).type.shape != shape) return false;
  std::vector<int> inputs = rewriter.node(at).inputs;
  inputs.push_back(terms[1]);
  const bool left = scaled != nullptr && scaled->left() >= 0, right = scaled != nullptr && scaled->right() >= 0;
  rewriter.replace(index, std::array{at}, std::make_shared<NeighbourAffine>(left, right, Activation::none), inputs,
                   out);
  return true;
}

// The same with the activation behind it; the value before it stays available.
bool neighbour_activation(Rewriter& rewriter, int index) {
  const auto* activation = rewriter.as<ActivationOp>(index);
  if (activation == nullptr) return false;
  const int z = rewriter.node(index).inputs[0], y = rewriter.node(index).outputs[0];
  const int at = rewriter.producer(z);
  const auto* affine = rewriter.as<NeighbourAffine>(at);
  if (affine == nullptr || affine->activation() != Activation::none) return false;
  auto fused = std::make_shared<NeighbourAffine>(affine->has_left(), affine->has_right(), activation->activation());
  rewriter.replace(at, std::array{index}, std::move(fused), rewriter.node(at).inputs, {y, z});
  return true;
}

// product + other -> a product that adds to `other`; gradients that meet cost no pass of their own.
bool matmul_add(Rewriter& rewriter, int index) {
  if (rewriter.as<Sum>(index) == nullptr) return false;
  std::vector<int> terms = rewriter.node(index).inputs;
  const std::vector<int> out = rewriter.node(index).outputs;
  for (const int product : terms) {
    const int at = rewriter.producer(product);
    const auto* matmul = rewriter.as<MatMul>(at);
    if (matmul == nullptr || matmul->accumulates() || !rewriter.private_to(product, index)) continue;
    for (const int other : terms) {
      // Two terms: the product may move to the place of the sum. More: it stays and takes one term off the sum.
      const bool in_place = rewriter.producer(other) < at;
      if (other == product || (terms.size() > 2 && !in_place)) continue;
      std::vector<int> inputs = rewriter.node(at).inputs;
      inputs.push_back(other);
      if (terms.size() == 2) {
        rewriter.replace(index, std::array{at}, matmul->accumulating(), std::move(inputs), out);
      } else {
        rewriter.replace(at, {}, matmul->accumulating(), std::move(inputs), {product});
        terms.erase(std::find(terms.begin(), terms.end(), other));
        rewriter.replace(index, {}, std::make_shared<Sum>(), terms, out);
      }
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<ScaledValue> find_scaled(const Rewriter& rewriter, int product) {
  const int at = rewriter.producer(product);
  const auto* mul = rewriter.as<BinaryOp>(at);
  if (mul == nullptr || mul->function() != Binary::mul) return {};
  const Graph& graph = rewriter.graph();
  for (const std::size_t side : {0, 1}) {
    const int value = rewriter.node(at).inputs[side], scale = rewriter.node(at).inputs[1 - side];
    const Shape &shape = graph.value(value).type.shape, &factor = graph.value(scale).type.shape;
    if (shape != graph.value(product).type.shape) continue;
    if (factor.elements() == 1 || factor == Shape{shape.channels()}) return ScaledValue{at, value, scale};
  }
  return {};
}

std::vector<Rewrite> gradient_fusions() {
  return {{"loss_gradient", loss_gradient},
          {"attention_context", attention_context},
          {"product_slope", product_slope},
          {"weight_and_bias", weight_and_bias},
          {"slope_lines", slope_lines},
          {"column_sums", gather_column_sums},
          {"weight_gradients", gather_weight_gradients}};
}

std::vector<Rewrite> neighbour_fusions() {
  return {{"neighbour_bias", neighbour_bias}, {"neighbour_activation", neighbour_activation}};
}

std::vector<Rewrite> op_fusions() {
  return {{"linear_cross_entropy", linear_cross_entropy},
          {"linear_activation", linear_activation},
          {"scaled_add", fuse_scaled_add},
          {"matmul_add", matmul_add}};
}

}  // namespace norma
