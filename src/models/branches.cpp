#include "norma/models/branches.h"

#include <cmath>

#include "norma/core/error.h"
#include "norma/ops/attention.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/linear.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

// The value for a role, or that of a wider one.
std::optional<double> rule(const std::map<std::string, double>& rules, std::string_view role) {
  for (const std::string& name : {std::string(role), std::string("block"), std::string("all")}) {
    if (const auto found = rules.find(name); found != rules.end()) return found->second;
  }
  return std::nullopt;
}

// A weight made of equal blocks side by side, one per role, and its bias.
Wire dense(Parameters& parameters, Wire x, std::int64_t out, const std::vector<std::string>& roles,
           std::string_view spec_role, const InitRules& rules, Activation activation = Activation::none) {
  const std::int64_t in = x.shape().channels();
  const std::int64_t block = out / static_cast<std::int64_t>(roles.size());
  const double xavier = std::sqrt(2.0 / static_cast<double>(in + block));
  std::vector<ColumnBlock> blocks;
  for (const std::string& role : roles)
    blocks.push_back({block, rules.deviation_of(role).value_or(xavier) * rules.gain_of(role)});
  const Wire weight = parameters.share(
      {in, out}, {.name = "weight", .init = Init::normal(1), .blocks = blocks, .role = std::string(spec_role)});
  const Wire bias = parameters.share({out}, {.name = "bias", .init = Init::constant(0), .role = "bias"});
  return linear(x, weight, bias, activation);
}

}  // namespace

double InitRules::gain_of(std::string_view role) const { return rule(gain, role).value_or(1); }
std::optional<double> InitRules::deviation_of(std::string_view role) const { return rule(deviation, role); }

namespace {

Wire split_heads(Wire x, std::int64_t heads) {
  const Shape& s = x.shape();
  return reshape(x, {s[0], s[1], heads, s[2] / heads});
}

// A norm on one of q, k, v [batch, time, width].
Wire norm_projection(const AttentionBranch& branch, const std::string& kind, const char* site, Wire x) {
  if (kind.empty()) return x;
  if (branch.extras.norm_width == AttentionExtras::Width::full) return branch.norm(kind, site, x);
  return reshape(branch.norm(kind, site, split_heads(x, branch.heads)), x.shape());
}

// Attention over separate q, k, v, with what the extras ask for between projection and context.
Wire attend_with_extras(const AttentionBranch& branch, Wire qkv, std::int64_t width) {
  const AttentionExtras& extras = branch.extras;
  if (width % branch.heads != 0) fail("width {} is not divisible by {} heads", width, branch.heads);
  const Wire q = norm_projection(branch, extras.q_norm, "q_norm", slice_last(qkv, 0, width));
  const Wire k = norm_projection(branch, extras.k_norm, "k_norm", slice_last(qkv, width, width));
  const Wire v = norm_projection(branch, extras.v_norm, "v_norm", slice_last(qkv, 2 * width, width));
  const AttentionOptions options{.heads = branch.heads, .mask = branch.mask};
  Wire context;
  if (extras.carried_scores != nullptr) {
    const ScoredAttention scored = attention_with_scores(q, k, v, options, *extras.carried_scores);
    *extras.carried_scores = scored.scores;
    context = scored.context;
  } else {
    context = attention(q, k, v, options);
  }
  return extras.inner_norm.empty() ? context : branch.norm(extras.inner_norm, "inner_norm", context);
}

}  // namespace

Wire attention_branch(Parameters& parameters, Wire x, const AttentionBranch& branch) {
  Graph& graph = parameters.graph();
  const std::int64_t width = x.shape().channels();
  const auto project = [&](const char* name, Wire in, std::int64_t out, const std::vector<std::string>& roles) {
    const auto scope = graph.scope(name);
    return dense(parameters, in, out, roles, roles.size() == 3 ? "query_key_value" : "out", branch.init);
  };
  const Wire qkv = project("qkv", x, 3 * width, {"query", "key", "value"});
  const Wire context = branch.extras.any() ? attend_with_extras(branch, qkv, width)
                                           : attention_packed(qkv, {.heads = branch.heads, .mask = branch.mask});
  const Wire out = project("out", context, width, {"out"});
  if (!branch.extras.head_gain) return out;
  const Wire gain =
      parameters.share({branch.heads, 1}, {.name = "head_gain", .init = Init::constant(1), .role = "learned"});
  return reshape(split_heads(out, branch.heads) * gain, out.shape());
}

Wire feed_forward_branch(Parameters& parameters, Wire x, const FeedForwardBranch& branch) {
  Graph& graph = parameters.graph();
  const auto project = [&](const char* name, Wire in, std::int64_t out, Activation activation) {
    const auto scope = graph.scope(name);
    // GPT-2's rule for output projections names the second matrix "out" as well.
    const bool output = std::string_view(name) == "out" && branch.init.deviation.contains("out");
    return dense(parameters, in, out, {output ? "out" : "ffn"}, "ffn", branch.init, activation);
  };
  Wire hidden = project("in", x, branch.hidden, branch.activation);
  if (!branch.inner_norm.empty()) hidden = branch.norm(branch.inner_norm, "inner_norm", hidden);
  return project("out", hidden, x.shape().channels(), Activation::none);
}

}  // namespace norma
