#include "norma/models/branches.h"

#include <cmath>

#include "norma/core/error.h"
#include "norma/ops/attention.h"
#include "norma/ops/linear.h"

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
           const InitRules& rules, Activation activation = Activation::none) {
  const std::int64_t in = x.shape().channels();
  const std::int64_t block = out / static_cast<std::int64_t>(roles.size());
  const double xavier = std::sqrt(2.0 / static_cast<double>(in + block));
  std::vector<double> deviations;
  for (const std::string& role : roles)
    deviations.push_back(rules.deviation_of(role).value_or(xavier) * rules.gain_of(role));
  const Wire weight = parameters.share("weight", {in, out}, Init::normal(1), deviations);
  const Wire bias = parameters.share("bias", {out}, Init::constant(0));
  return linear(x, weight, bias, activation);
}

}  // namespace

double InitRules::gain_of(std::string_view role) const { return rule(gain, role).value_or(1); }
std::optional<double> InitRules::deviation_of(std::string_view role) const { return rule(deviation, role); }

Wire attention_branch(Parameters& parameters, Wire x, const AttentionBranch& branch) {
  Graph& graph = parameters.graph();
  const std::int64_t width = x.shape().channels();
  const auto project = [&](const char* name, Wire in, std::int64_t out, const std::vector<std::string>& roles) {
    const auto scope = graph.scope(name);
    return dense(parameters, in, out, roles, branch.init);
  };
  const Wire qkv = project("qkv", x, 3 * width, {"query", "key", "value"});
  return project("out", attention_packed(qkv, {.heads = branch.heads, .mask = branch.mask}), width, {"out"});
}

Wire feed_forward_branch(Parameters& parameters, Wire x, const FeedForwardBranch& branch) {
  Graph& graph = parameters.graph();
  const auto project = [&](const char* name, Wire in, std::int64_t out, Activation activation) {
    const auto scope = graph.scope(name);
    // GPT-2's rule for output projections names the second matrix "out" as well.
    const bool output = std::string_view(name) == "out" && branch.init.deviation.contains("out");
    return dense(parameters, in, out, {output ? "out" : "ffn"}, branch.init, activation);
  };
  return project("out", project("in", x, branch.hidden, branch.activation), x.shape().channels(), Activation::none);
}

}  // namespace norma
