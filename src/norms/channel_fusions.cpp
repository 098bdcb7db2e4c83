#include <algorithm>
#include <array>

#include "norma/graph/sum.h"
#include "norma/norms/channel.h"
#include "norma/norms/fusions.h"
#include "norma/ops/activation.h"
#include "norms/channel_layout.h"

namespace norma {
namespace {

// The node that makes `value` as its first output, if it is a norm over positions with nothing behind it.
int plain_channel_norm(const Rewriter& rewriter, int value) {
  const int at = rewriter.producer(value);
  const ChannelNorm* const norm = rewriter.as<ChannelNorm>(at);
  const bool plain = norm != nullptr && !norm->options().adds && !norm->options().relu;
  return plain && rewriter.node(at).outputs[0] == value ? at : -1;
}

void put_behind(Rewriter& rewriter, int norm, std::vector<int> removed, int added, bool relu, int y) {
  ChannelNormOptions options = rewriter.as<ChannelNorm>(norm)->options();
  std::vector<int> inputs = rewriter.node(norm).inputs, outputs = rewriter.node(norm).outputs;
  options.adds = added >= 0;
  options.relu = relu;
  if (added >= 0) inputs.push_back(added);
  outputs[0] = y;
  rewriter.replace(norm, removed, std::make_shared<ChannelNorm>(options), std::move(inputs), std::move(outputs));
}

// Node `index` is relu of a norm, or of a norm and a term that is known where the norm is computed.
bool channel_norm_relu(Rewriter& rewriter, int index) {
  const ActivationOp* const activation = rewriter.as<ActivationOp>(index);
  if (activation == nullptr || activation->activation() != Activation::relu) return false;
  const int z = rewriter.node(index).inputs[0], y = rewriter.node(index).outputs[0];
  if (!rewriter.private_to(z, index)) return false;
  if (const int norm = plain_channel_norm(rewriter, z); norm >= 0) {
    put_behind(rewriter, norm, {index}, -1, true, y);
    return true;
  }
  const int sum = rewriter.producer(z);
  if (rewriter.as<Sum>(sum) == nullptr || rewriter.node(sum).inputs.size() != 2) return false;
  const std::vector<int> terms = rewriter.node(sum).inputs;
  for (const std::size_t k : {0, 1}) {
    const int norm = plain_channel_norm(rewriter, terms[k]), other = terms[1 - k];
    if (norm < 0 || !rewriter.private_to(terms[k], sum) || !rewriter.available_before(std::array{other}, norm))
      continue;
    put_behind(rewriter, norm, {sum, index}, other, true, y);
    return true;
  }
  return false;
}

// Node `index` is the gradient through a norm of what comes through its relu, and nobody else reads that.
bool channel_norm_relu_backward(Rewriter& rewriter, int index) {
  const ChannelNormBackward* const backward = rewriter.as<ChannelNormBackward>(index);
  if (backward == nullptr || backward->options().relu) return false;
  std::vector<int> inputs = rewriter.node(index).inputs;
  const int relu = rewriter.producer(inputs[1]);
  const ActivationBackward* const activation = rewriter.as<ActivationBackward>(relu);
  if (activation == nullptr || activation->activation() != Activation::relu) return false;
  if (!rewriter.private_to(inputs[1], index)) return false;
  const int y = rewriter.node(relu).inputs[0], dy = rewriter.node(relu).inputs[1];
  const int norm = rewriter.producer(y);
  const ChannelNorm* const forward = rewriter.as<ChannelNorm>(norm);
  if (forward == nullptr || !forward->options().relu || forward->options().adds) return false;
  if (rewriter.node(norm).inputs[0] != inputs[0]) return false;
  const ChannelArguments arguments(forward->options());
  inputs[1] = dy;
  if (arguments.bias >= 0) inputs.push_back(rewriter.node(norm).inputs[static_cast<std::size_t>(arguments.bias)]);
  ChannelNormOptions options = backward->options();
  options.relu = true;
  rewriter.replace(index, std::array{relu}, std::make_shared<ChannelNormBackward>(options), std::move(inputs),
                   rewriter.node(index).outputs);
  return true;
}

}  // namespace

std::vector<Rewrite> channel_norm_fusions() {
  return {{"channel_norm_relu", channel_norm_relu}, {"channel_norm_relu_backward", channel_norm_relu_backward}};
}

}  // namespace norma
