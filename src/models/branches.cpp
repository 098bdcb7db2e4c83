#include "norma/models/branches.h"

#include "norma/core/error.h"
#include "norma/ops/attention.h"
#include "norma/ops/linear.h"

namespace norma {
namespace {

Wire dense(Parameters& parameters, std::string_view name, Wire x, std::int64_t out,
           Activation activation = Activation::none) {
  const auto scope = parameters.graph().scope(name);
  const std::int64_t in = x.shape().channels();
  const Wire weight = parameters.make("weight", {in, out}, Init::xavier_normal(in, out));
  const Wire bias = parameters.make("bias", {out}, Init::constant(0));
  return linear(x, weight, bias, activation);
}

}  // namespace

Wire attention_branch(Parameters& parameters, Wire x, const AttentionBranch& branch) {
  const auto scope = parameters.graph().scope("attn");
  const std::int64_t width = x.shape().channels();
  const Wire qkv = dense(parameters, "qkv", x, 3 * width);
  return dense(parameters, "out", attention_packed(qkv, {.heads = branch.heads, .mask = branch.mask}), width);
}

Wire feed_forward_branch(Parameters& parameters, Wire x, const FeedForwardBranch& branch) {
  const auto scope = parameters.graph().scope("ffn");
  const std::int64_t width = x.shape().channels();
  return dense(parameters, "out", dense(parameters, "in", x, branch.hidden, branch.activation), width);
}

}  // namespace norma
