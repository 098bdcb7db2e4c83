#include "norma/models/branches.h"

#include <cmath>

#include "norma/core/error.h"
#include "norma/models/stack.h"
#include "norma/models/weight_form.h"
#include "norma/ops/attention.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/linear.h"
#include "norma/ops/rope.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

// Columns of a weight that play one role.
struct Part {
  std::string role;
  std::int64_t columns;
};

// What the linear layers of one branch have in common.
struct Dense {
  Parameters& parameters;
  const InitRules& init;
  const OptimiserRules& optimiser;
  const WeightStyle& style;

  // x W + b in a scope of its own. The embedding dimension is that of `x` (columns are vectors along it) or that of
  // the result (rows are).
  Wire operator()(const char* scope_name, Wire x, const std::vector<Part>& parts, const char* role, UnitVectors unit,
                  Activation activation = Activation::none) const {
    const auto scope = parameters.graph().scope(scope_name);
    const std::int64_t in = x.shape().channels();
    std::int64_t out = 0;
    std::vector<ColumnBlock> blocks, gains;
    std::vector<std::string> roles;

    bool replaced = false;  // a rule names the deviation: that is a normal distribution
    for (const Part& part : parts) {
      const double xavier = std::sqrt(2.0 / static_cast<double>(in + part.columns));
      const std::optional<double> deviation = init.deviation_of(part.role);
      const FormedStart start = formed_start(style.form, in, xavier, deviation, init.gain_of(part.role));
      blocks.push_back({part.columns, start.weight});
      gains.push_back({part.columns, start.gain});
      replaced = replaced || deviation.has_value();
      roles.push_back(part.role);
      out += part.columns;
    }
    if (style.unit && style.form != WeightForm::plain) throw NotBuiltError("weights of unit length have no other form");
    const bool uniform = style.start == WeightInit::xavier_uniform && !replaced;
    ParameterSpec spec{.name = "weight",
                       .init = uniform ? Init::uniform(std::sqrt(3.0)) : Init::normal(1),
                       .blocks = std::move(blocks),
                       .role = role,
                       .unit = style.unit ? unit : UnitVectors::none};
    optimiser.apply(roles, spec);
    ParameterSpec gain{.name = {}, .init = Init::constant(1), .blocks = std::move(gains), .role = "norm"};
    optimiser.apply("norm", gain);
    const Wire weight = formed(parameters, parameters.share({in, out}, spec), style.form, std::move(gain));
    if (!style.biases) return linear(x, weight, {}, activation);
    ParameterSpec bias{.name = "bias", .init = Init::constant(0), .role = "bias"};
    optimiser.apply("bias", bias);
    return linear(x, weight, parameters.share({out}, bias), activation);
  }

  // A gain on the last axis that is stored at a scale of its own.
  Wire gain(const char* name, std::int64_t size, const StoredGain& stored) const {
    ParameterSpec spec{.name = name, .init = Init::constant(stored.stored), .role = "learned"};
    optimiser.apply("learned", spec);
    return parameters.share({size}, spec) * (stored.start / stored.stored);
  }
};

Wire split_heads(Wire x, std::int64_t heads) {
  const Shape& s = x.shape();
  return reshape(x, {s[0], s[1], heads, s[2] / heads});
}

// One of q, k, v [batch, time, heads * head_width] with its norm.
Wire norm_projection(const AttentionBranch& branch, const std::string& kind, const char* site, Wire x,
                     std::int64_t heads) {
  if (kind.empty()) return x;
  if (branch.extras.norm_width == AttentionExtras::Width::full) return branch.norm(kind, site, x);
  return reshape(branch.norm(kind, site, split_heads(x, heads)), x.shape());
}

class AttentionBuilder {
 public:
  AttentionBuilder(Parameters& parameters, Wire x, const AttentionBranch& branch)
      : dense_{parameters, branch.init, branch.optimiser, branch.style},
        x_(x),
        branch_(branch),
        width_(x.shape().channels()),
        kv_heads_(branch.kv_heads == 0 ? branch.heads : branch.kv_heads) {
    if (x.shape().rank() != 3)  // a formula may hand over anything, such as a mean
      fail("attention reads tokens [batch, time, channels], but was given {}", x.shape().str());
    if (branch.heads < 1 || kv_heads_ < 1)
      fail("attention needs at least one head, not {} and {}", branch.heads, kv_heads_);
    if (width_ % branch.heads != 0) fail("width {} is not divisible by {} heads", width_, branch.heads);
    head_width_ = width_ / branch.heads;
  }

  Wire context() {
    const AttentionOptions options{
        .heads = branch_.heads, .kv_heads = kv_heads_, .mask = branch_.mask, .scale = branch_.extras.scale};
    const std::int64_t kv = kv_heads_ * head_width_;
    Wire q, k, v;
    if (branch_.memory) {
      q = dense_("q", x_, {{"cross_query", width_}}, "query", UnitVectors::columns);
      const Wire packed =
          dense_("kv", branch_.memory, {{"cross_key", kv}, {"cross_value", kv}}, "key_value", UnitVectors::columns);
      k = slice_last(packed, 0, kv);
      v = slice_last(packed, kv, kv);
    } else {
      const Wire packed =
          dense_("qkv", x_, {{"query", width_}, {"key", kv}, {"value", kv}}, "query_key_value", UnitVectors::columns);
      if (plain()) return attention_packed(rotated(packed, width_ + kv), options, branch_.lengths);
      q = slice_last(packed, 0, width_);
      k = slice_last(packed, width_, kv);
      v = slice_last(packed, width_ + kv, kv);
    }
    prepare(q, k, v);
    if (branch_.extras.carried_scores == nullptr) return attention(q, k, v, options, branch_.lengths);
    Wire& carried = *branch_.extras.carried_scores;
    const ScoredAttention scored = attention_with_scores(q, k, v, options, carried, branch_.lengths);
    carried = scored.scores;
    return scored.context;
  }

  Wire project(Wire context) {
    const AttentionExtras& extras = branch_.extras;
    if (!extras.inner_norm.empty()) context = branch_.norm(extras.inner_norm, "inner_norm", context);
    const Wire out = dense_("out", context, {{branch_.memory ? "cross_out" : "out", width_}}, "out", UnitVectors::rows);
    if (!extras.head_gain) return out;
    ParameterSpec spec{.name = "head_gain", .init = Init::constant(1), .role = "learned"};
    branch_.optimiser.apply("learned", spec);
    const Wire gain = dense_.parameters.share({branch_.heads, 1}, spec);
    return reshape(split_heads(out, branch_.heads) * gain, out.shape());
  }

 private:
  // Whether queries, keys and values can stay packed.
  bool plain() const {
    const AttentionExtras& extras = branch_.extras;
    return extras.q_norm.empty() && extras.k_norm.empty() && extras.v_norm.empty() && !extras.qk_gain &&
           extras.carried_scores == nullptr;
  }

  Wire rotated(Wire x, std::int64_t channels) const {
    return branch_.rope && !branch_.memory ? rope(x, {.head_width = head_width_, .rotated = channels}) : x;
  }

  void prepare(Wire& q, Wire& k, Wire& v) {
    const AttentionExtras& extras = branch_.extras;
    q = rotated(norm_projection(branch_, extras.q_norm, "q_norm", q, branch_.heads), width_);
    k = rotated(norm_projection(branch_, extras.k_norm, "k_norm", k, kv_heads_), kv_heads_ * head_width_);
    v = norm_projection(branch_, extras.v_norm, "v_norm", v, kv_heads_);
    if (!extras.qk_gain) return;
    if (kv_heads_ != branch_.heads)
      fail("a gain shared by queries and keys needs as many of both, but there are {} and {} heads", branch_.heads,
           kv_heads_);
    const Wire gain = dense_.gain("qk_gain", width_, *extras.qk_gain);
    q = q * gain;
    k = k * gain;
  }

  Dense dense_;
  Wire x_;
  const AttentionBranch& branch_;
  std::int64_t width_, kv_heads_, head_width_ = 0;
};

}  // namespace

Wire attention_branch(Parameters& parameters, Wire x, const AttentionBranch& branch) {
  AttentionBuilder builder(parameters, x, branch);
  return builder.project(builder.context());
}

Wire feed_forward_branch(Parameters& parameters, Wire x, const FeedForwardBranch& branch) {
  const Dense dense{parameters, branch.init, branch.optimiser, branch.style};
  const std::int64_t width = x.shape().channels();
  std::vector<Part> parts = {{"ffn", branch.hidden}};
  if (branch.gated) parts.push_back({"ffn", branch.hidden});
  const bool direct = !branch.gated && !branch.gain;
  Wire hidden = dense("in", x, parts, "ffn", UnitVectors::columns, direct ? branch.activation : Activation::none);
  if (branch.gain) hidden = hidden * dense.gain("gain", hidden.shape().channels(), *branch.gain);
  if (branch.gated) {
    const Wire gate = slice_last(hidden, 0, branch.hidden), value = slice_last(hidden, branch.hidden, branch.hidden);
    hidden = branch.activation == Activation::silu ? swiglu(hidden) : activate(gate, branch.activation) * value;
  } else if (!direct) {
    hidden = activate(hidden, branch.activation);
  }
  if (!branch.inner_norm.empty()) hidden = branch.norm(branch.inner_norm, "inner_norm", hidden);
  // GPT-2's rule for output projections names the second matrix "out" as well.
  const char* role = branch.init.deviation.contains("out") ? "out" : "ffn";
  return dense("out", hidden, {{role, width}}, "ffn", UnitVectors::rows);
}

}  // namespace norma
