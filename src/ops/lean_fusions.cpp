// linear_slope, attention_remade: what is made again for the backward pass, and what reads it, in one op.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "norma/ops/attention_remade.h"
#include "norma/ops/fusions.h"
#include "norma/ops/linear.h"
#include "norma/ops/linear_slope.h"
#include "norma/ops/matmul_slope.h"
#include "norma/ops/weight_gradients.h"

namespace norma {
namespace {

// A hidden layer that is made again and the gradient that meets its activation's derivative -> one op in the place of
// the latter, of which nothing but the layer's output and the gradient pass through memory. Only where both have
// kernels of our own, whose bits the op keeps (src/ops/cuda/hopper_product.h): bf16, and relu is the library's.
bool remade_slope(Rewriter& rewriter, int index) {
  constexpr std::int64_t kDeepest = 1024;  // as for a product with a derivative alone
  static const char* const trial = std::getenv("NORMA_TRIAL_DUAL");
  if (trial != nullptr && std::string_view(trial) == "old") return false;
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

// Gradients of weights without pair `at`, or with one more.
struct WeightPairs {
  std::vector<bool> biases;
  std::vector<int> inputs, weights, sums;  // sums: of those that have a bias

  WeightPairs(const WeightGradients& op, const Node& node) : biases(op.has_bias()) {
    const auto pairs = static_cast<std::ptrdiff_t>(biases.size());
    const std::vector<int> outputs = node.outputs;
    inputs = node.inputs;
    weights.assign(outputs.begin(), outputs.begin() + pairs);
    sums.assign(outputs.begin() + pairs, outputs.end());
  }
  // Moves one to the end of another op's.
  void move(std::size_t at, WeightPairs& to) {
    const auto pair = static_cast<std::ptrdiff_t>(at);
    to.biases.push_back(biases[at]);
    to.inputs.insert(to.inputs.end(), {inputs[2 * at], inputs[2 * at + 1]});
    to.weights.push_back(weights[at]);
    const auto sum = sums.begin() + std::count(biases.begin(), biases.begin() + pair, true);
    if (biases[at]) {
      to.sums.push_back(*sum);
      sums.erase(sum);
    }
    biases.erase(biases.begin() + pair);
    inputs.erase(inputs.begin() + 2 * pair, inputs.begin() + 2 * pair + 2);
    weights.erase(weights.begin() + pair);
  }
  void put(Rewriter& rewriter, int index) const {
    std::vector<int> outputs = weights;
    outputs.insert(outputs.end(), sums.begin(), sums.end());
    rewriter.replace(index, {}, std::make_shared<WeightGradients>(biases), inputs, outputs);
  }
};

// The gradient of a weight that the context meets, made before attention's backward pass beside others: moves to the
// next such op, so that the context may be made by that pass. False where that cannot be.
bool postpone_reader(Rewriter& rewriter, int context, int index) {
  constexpr int kNear = 8, kFarthest = 48;  // nodes
  int reader = -1;
  std::size_t pair = 0;
  for (int at = index - 1; at >= std::max(0, index - kNear) && reader < 0; --at) {
    if (rewriter.as<WeightGradients>(at) == nullptr) continue;
    const std::vector<int> inputs = rewriter.node(at).inputs;
    const auto found = std::find(inputs.begin(), inputs.end(), context);
    if (found == inputs.end() || (found - inputs.begin()) % 2 != 0) continue;
    pair = static_cast<std::size_t>(found - inputs.begin()) / 2;
    reader = at;
  }
  if (!rewriter.unread_before(std::array{context}, index, reader)) return false;
  if (reader < 0) return true;
  int next = index + 1;
  while (next < std::min(rewriter.size(), index + kFarthest) && rewriter.as<WeightGradients>(next) == nullptr) ++next;
  if (next == std::min(rewriter.size(), index + kFarthest)) return false;
  WeightPairs from(*rewriter.as<WeightGradients>(reader), rewriter.node(reader));
  WeightPairs to(*rewriter.as<WeightGradients>(next), rewriter.node(next));
  const std::size_t here = to.weights.size(), sums = to.sums.size();
  if (from.weights.size() == 1 || here == static_cast<std::size_t>(kMostWeightGradients)) return false;
  from.move(pair, to);
  std::vector<int> moved = {to.weights[here]};
  moved.insert(moved.end(), to.sums.begin() + static_cast<std::ptrdiff_t>(sums), to.sums.end());
  if (!rewriter.unread_before(moved, next, reader)) return false;
  from.put(rewriter, reader);
  to.put(rewriter, next);
  return true;
}

// Attention of short sequences that is made again, and its backward pass -> one op, if a kernel has a block for each
// head (src/ops/cuda/attention_hopper_whole_few.cuh) and the heads of one member are enough of them, and not too many.
bool remade_attention(Rewriter& rewriter, int index) {
  constexpr std::int64_t kFewestHeads = 64, kMostHeads = 264, kLongest = 128, kNarrowest = 33, kWidest = 64;
  static const char* const trial = std::getenv("NORMA_TRIAL_CONTEXT");
  if (trial != nullptr && std::string_view(trial) == "old") return false;
  const auto* backward = rewriter.as<AttentionBackward>(index);
  if (backward == nullptr || backward->context() != SavedContext::given) return false;
  const std::vector<int> in = rewriter.node(index).inputs, gradients = rewriter.node(index).outputs;
  const int context = in[in.size() - 3], lse = in[in.size() - 2], at = rewriter.producer(context);
  if (rewriter.as<Attention>(at) == nullptr || !rewriter.node(at).again) return false;
  const std::vector<int> read = rewriter.node(at).inputs, made = rewriter.node(at).outputs;
  if (made[0] != context || made[1] != lse || !std::equal(read.begin(), read.end(), in.begin(), in.end() - 3))
    return false;
  const Type& type = rewriter.graph().value(context).type;
  const Shape& keys = rewriter.graph().value(in[backward->layout() == QkvLayout::packed ? 0 : 1]).type.shape;
  const std::int64_t heads = backward->options().heads, width = type.shape[2] / heads, all = heads * type.shape[0];
  if (type.dtype != DType::bf16 || type.shape[1] > kLongest || keys[1] > kLongest || width < kNarrowest ||
      width > kWidest || all < kFewestHeads || all > kMostHeads)
    return false;
  if (!rewriter.private_to(lse, index) || !postpone_reader(rewriter, context, index)) return false;
  std::vector<int> inputs = read, outputs = gradients;
  inputs.push_back(in.back());
  outputs.insert(outputs.end(), made.begin(), made.end());
  auto both = std::make_shared<AttentionRemade>(backward->layout(), backward->options());
  rewriter.replace(index, std::array{at}, std::move(both), inputs, outputs);
  return true;
}

}  // namespace

std::vector<Rewrite> lean_fusions() { return {{"linear_slope", remade_slope}, {"attention_remade", remade_attention}}; }

}  // namespace norma
