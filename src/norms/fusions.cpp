#include "norma/norms/fusions.h"

#include <array>
#include <bit>

#include "norma/graph/sum.h"
#include "norma/norms/row.h"
#include "norma/ops/activation.h"
#include "norma/ops/fusions.h"

namespace norma {
namespace {

// Node `index` is a norm of a sum. The fused node takes the place of the sum, if the norm's parameters are known there,
// else that of the norm, if nobody reads the sum before.
bool add_norm(Rewriter& rewriter, int index) {
  const RowNorm* const norm = rewriter.as<RowNorm>(index);
  if (norm == nullptr || norm->terms() != 1) return false;
  const Node& node = rewriter.node(index);
  const int sum_value = node.inputs[0], sum_node = rewriter.producer(sum_value);
  if (rewriter.as<Sum>(sum_node) == nullptr) return false;
  std::vector<int> inputs = rewriter.node(sum_node).inputs;
  const int terms = static_cast<int>(inputs.size());
  if (terms > kMostRowTerms) return false;
  const std::span<const int> parameters = std::span(node.inputs).subspan(1);
  const int moved[] = {sum_value};
  const bool early = rewriter.available_before(parameters, sum_node);
  if (!early && !rewriter.unread_before(moved, index, index)) return false;
  inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  std::vector<int> outputs = node.outputs;
  outputs.push_back(sum_value);
  const int others[] = {early ? index : sum_node};
  rewriter.replace(early ? sum_node : index, others,
                   std::make_shared<RowNorm>(norm->definition(), norm->options(), terms), std::move(inputs),
                   std::move(outputs));
  return true;
}

// Node `index` is a sum, one of whose terms is the gradient through a norm and read by nobody else. The fused node
// takes the place of the norm's backward, if the other terms are known there, else that of the sum, if nobody reads the
// gradients by gain and bias before.
bool norm_backward_add(Rewriter& rewriter, int index) {
  if (rewriter.as<Sum>(index) == nullptr) return false;
  const std::vector<int> terms = rewriter.node(index).inputs;
  for (const int dx : terms) {
    const int producer = rewriter.producer(dx);
    const RowNormBackward* const backward = rewriter.as<RowNormBackward>(producer);
    // What is scaled already is the gradient without these.
    if (backward == nullptr || backward->scaled() > 0) continue;
    if (rewriter.node(producer).outputs[0] != dx || !rewriter.private_to(dx, index)) continue;
    std::vector<int> rest = terms;
    std::erase(rest, dx);
    const int residuals = backward->residuals() + static_cast<int>(rest.size());
    if (residuals > kMostRowTerms) continue;
    const std::vector<int> old_outputs = rewriter.node(producer).outputs;
    const bool early = rewriter.available_before(rest, producer);
    if (!early && !rewriter.unread_before(std::span(old_outputs).subspan(1), index, index)) continue;
    std::vector<int> inputs = rewriter.node(producer).inputs;
    inputs.insert(inputs.end(), rest.begin(), rest.end());
    std::vector<int> outputs = old_outputs;
    outputs[0] = rewriter.node(index).outputs[0];
    const int others[] = {early ? index : producer};
    rewriter.replace(early ? producer : index, others,
                     std::make_shared<RowNormBackward>(backward->definition(), backward->options(), residuals),
                     std::move(inputs), std::move(outputs));
    return true;
  }
  return false;
}

// Node `index` is a norm of a sum; a term that is a product read by nobody else becomes its factors.
bool norm_scale(Rewriter& rewriter, int index) {
  const RowNorm* const norm = rewriter.as<RowNorm>(index);
  if (norm == nullptr || norm->terms() == 1) return false;
  for (int k = 0; k < norm->terms(); ++k) {
    std::vector<int> inputs = rewriter.node(index).inputs;
    int& term = inputs[static_cast<std::size_t>(k)];
    if (norm->scales(k) || !rewriter.private_to(term, index)) continue;
    const std::optional<ScaledValue> product = find_scaled(rewriter, term);
    if (!product) continue;
    term = product->value;
    // Scales are the last inputs, in the order of their terms.
    const unsigned later = norm->scaled() >> k;
    inputs.insert(inputs.end() - std::popcount(later), product->scale);
    const int others[] = {product->node};
    rewriter.replace(
        index, others,
        std::make_shared<RowNorm>(norm->definition(), norm->options(), norm->terms(), norm->scaled() | 1u << k),
        std::move(inputs), rewriter.node(index).outputs);
    return true;
  }
  return false;
}

// Node `index` is relu of a norm's result that nobody else reads. The derivative of relu needs its result alone.
bool row_norm_relu(Rewriter& rewriter, int index) {
  const ActivationOp* const activation = rewriter.as<ActivationOp>(index);
  if (activation == nullptr || activation->activation() != Activation::relu) return false;
  const int z = rewriter.node(index).inputs[0], y = rewriter.node(index).outputs[0], at = rewriter.producer(z);
  const RowNorm* const norm = rewriter.as<RowNorm>(at);
  if (norm == nullptr || norm->options().relu || rewriter.node(at).outputs[0] != z || !rewriter.private_to(z, index))
    return false;
  RowNormOptions options = norm->options();
  options.relu = true;
  std::vector<int> outputs = rewriter.node(at).outputs;
  outputs[0] = y;
  auto fused = std::make_shared<RowNorm>(norm->definition(), options, norm->terms(), norm->scaled());
  rewriter.replace(at, std::array{index}, std::move(fused), rewriter.node(at).inputs, std::move(outputs));
  return true;
}

// Node `index` multiplies the gradient through a norm by a factor that is known where the gradient is made.
bool norm_backward_scale(Rewriter& rewriter, int index) {
  if (rewriter.node(index).outputs.size() != 1) return false;
  const int scaled_value = rewriter.node(index).outputs[0];
  const std::optional<ScaledValue> product = find_scaled(rewriter, scaled_value);
  if (!product) return false;
  const int producer = rewriter.producer(product->value);
  const RowNormBackward* const backward = rewriter.as<RowNormBackward>(producer);
  if (backward == nullptr || backward->scaled() == kMostRowTerms) return false;
  const int scale[] = {product->scale};
  if (rewriter.node(producer).outputs[0] != product->value || !rewriter.available_before(scale, producer)) return false;
  std::vector<int> inputs = rewriter.node(producer).inputs, outputs = rewriter.node(producer).outputs;
  inputs.push_back(product->scale);
  outputs.push_back(scaled_value);
  const int others[] = {index};
  rewriter.replace(producer, others,
                   std::make_shared<RowNormBackward>(backward->definition(), backward->options(), backward->residuals(),
                                                     backward->scaled() + 1),
                   std::move(inputs), std::move(outputs));
  return true;
}

}  // namespace

std::vector<Rewrite> norm_scale_fusions() {
  return {{"norm_scale", norm_scale}, {"norm_backward_scale", norm_backward_scale}};
}

std::vector<Rewrite> norm_relu_fusions() { return {{"row_norm_relu", row_norm_relu}}; }

std::vector<Rewrite> norm_fusions() { return {{"add_norm", add_norm}, {"norm_backward_add", norm_backward_add}}; }

}  // namespace norma
