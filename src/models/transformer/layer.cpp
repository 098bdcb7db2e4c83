// The branches of a transformer's layer as a stack calls them.
#include <cmath>

#include "models/options.h"
#include "norma/models/layer_branch.h"
#include "norma/models/stack.h"
#include "norma/ops/attention.h"
#include "norma/ops/linear.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

Wire build_attention(const BranchCall& call, bool cross, Mask mask) {
  const StackConfig& stack = call.stack;
  return attention_branch(call.parameters, call.in,
                          {.heads = stack.heads,
                           .mask = cross ? Mask::full : mask,
                           .init = call.rules.init,
                           .extras = call.options.attention(stack.qk_norm, call.carried),
                           .norm = call.norm,
                           .kv_heads = stack.kv_heads,
                           .rope = stack.rope,
                           .lengths = cross ? stack.memory_lengths : stack.lengths,
                           .memory = cross ? stack.memory : Wire(),
                           .optimiser = call.rules.optimiser,
                           .style = call.style});
}

// Xavier matrices side by side.
Wire square_weights(Parameters& parameters, const char* name, std::int64_t width, std::int64_t count) {
  const auto scope = parameters.graph().scope(name);
  const double deviation = std::sqrt(1 / static_cast<double>(width));
  ParameterSpec spec{.name = "weight", .init = Init::normal(1), .role = "weight"};
  for (std::int64_t i = 0; i < count; ++i) spec.blocks.push_back({width, deviation});
  return parameters.share({width, count * width}, spec);
}

Wire attention_apart(const BranchCall& call, Wire values, Mask mask) {
  const std::int64_t d = call.stack.width, heads = call.stack.heads;
  const Wire weight = square_weights(call.parameters, "qkv", d, 3);
  const Wire packed = linear(call.in, weight, {}, Activation::none),
             other = linear(values, weight, {}, Activation::none);
  const Wire context = attention(slice_last(packed, 0, d), slice_last(packed, d, d), slice_last(other, 2 * d, d),
                                 {.heads = heads, .kv_heads = heads, .mask = mask});
  return linear(context, square_weights(call.parameters, "out", d, 1), {}, Activation::none);
}

Wire build_feed_forward(const BranchCall& call) {
  return feed_forward_branch(call.parameters, call.in,
                             {.hidden = call.stack.hidden == 0 ? 4 * call.stack.width : call.stack.hidden,
                              .activation = call.stack.activation,
                              .init = call.rules.init,
                              .inner_norm = call.options.text("inner"),
                              .norm = call.norm,
                              .gated = call.stack.gated,
                              .gain = call.options.gain("gain", "gain_stored"),
                              .optimiser = call.rules.optimiser,
                              .style = call.style});
}

}  // namespace

LayerBranch feed_forward_layer_branch() { return {&branch_kind("ffn"), build_feed_forward}; }

LayerBranches transformer_layer(Memory memory, Mask mask) {
  LayerBranches layer = {
      {.kind = &branch_kind("attention"),
       .build = [mask](const BranchCall& call) { return build_attention(call, false, mask); },
       .apart = [mask](const BranchCall& call, Wire values) { return attention_apart(call, values, mask); }}};
  if (memory == Memory::present) {
    layer.push_back({.kind = &branch_kind("cross"),
                     .build = [mask](const BranchCall& call) { return build_attention(call, true, mask); }});
  }
  layer.push_back(feed_forward_layer_branch());
  return layer;
}

}  // namespace norma
