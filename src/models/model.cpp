#include "norma/models/model.h"

#include <cmath>

#include "norma/core/error.h"
#include "norma/models/rules.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/dropout.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/matmul.h"
#include "norma/ops/softmax.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

void check(const ModelConfig& c) {
  const auto positive = [](const char* name, std::int64_t value) {
    if (value < 1) fail("{} is {}; expected at least 1", name, value);
  };
  const auto not_negative = [](const char* name, std::int64_t value) {
    if (value < 0) fail("{} is {}; expected 0 or more", name, value);
  };
  positive("width", c.width);
  positive("vocabulary", c.vocabulary);
  positive("batch", c.batch);
  positive("time", c.time);
  not_negative("encoder_layers", c.encoder_layers);
  not_negative("kv_heads", c.kv_heads);
  not_negative("hidden", c.hidden);
  not_negative("source_vocabulary", c.source_vocabulary);
  not_negative("source_time", c.source_time);
  not_negative("classes", c.classes);
  if (c.classes > 0 && c.family != Family::encoder) fail("classes are for encoders; another family predicts tokens");
  if (c.classes > 0 && c.tied) fail("a classifier has no token head that could be tied");
}

class ModelBuilder {
 public:
  ModelBuilder(Graph& graph, const ModelConfig& config, const ModelOptions& options)
      : graph_(graph), config_(config), options_(options), scheme_(*config.scheme), parameters_(graph, config.dtype) {
    check(config);
    if (config.dropout) {
      dropout_ = graph.input("dropout", {{1}, config.dtype});
      dropout_key_ = graph.input("dropout_key", {{4}, DType::i32});
    }
  }

  Model build() {
    const bool classifier = config_.classes > 0;
    const Wire tokens = ids("tokens", config_.time);
    const Wire targets =
        classifier ? graph_.input("targets", {{config_.batch}, DType::i32}) : ids("targets", config_.time);
    model_.hidden = config_.family == Family::encoder_decoder ? encode_and_decode(tokens) : one_stack(tokens);
    finish(classifier ? config_.classes : config_.vocabulary, targets);
    model_.parameters = parameters_.specs();
    return std::move(model_);
  }

 private:
  Wire ids(const char* name, std::int64_t time) { return graph_.input(name, {{config_.batch, time}, DType::i32}); }
  Wire lengths(const char* name) { return graph_.input(name, {{config_.batch}, DType::i32}); }

  StackConfig stack_config() const {
    return {.layers = config_.layers,
            .heads = config_.heads,
            .hidden = config_.hidden,
            .activation = config_.activation,
            .norm = config_.norm,
            .mask = Mask::causal,
            .dropout = dropout_,
            .dropout_key = dropout_key_,
            .kv_heads = config_.kv_heads,
            .gated = config_.gated,
            .rope = config_.positions == Positions::rope,
            .biases = config_.biases,
            .qk_norm = config_.qk_norm,
            .weights = config_.weights,
            .constants = config_.constants,
            .profile = options_.profile,
            .order = options_.order};
  }

  SchemeRules rules(const StackConfig& stack) const {
    return rules_of(scheme_, stack_numbers(scheme_, stack, config_.width, 1, 1));
  }

  // A table or head, which start as the model says unless the scheme does.
  ParameterSpec outer(const char* name, const char* role, const SchemeRules& rules, UnitVectors unit) const {
    const double otherwise = std::string_view(role) == "head" ? config_.head_std : config_.embedding_std;
    const double deviation = rules.init.deviation_of(role).value_or(otherwise);
    ParameterSpec spec{.name = name,
                       .init = Init::normal(deviation * rules.init.gain_of(role)),
                       .role = role,
                       .unit = scheme_.weights.unit ? unit : UnitVectors::none};
    rules.optimiser.apply(role, spec);
    return spec;
  }

  Wire table(const char* name, std::int64_t vocabulary, const SchemeRules& rules) {
    return parameters_.share({vocabulary, config_.width}, outer(name, "embedding", rules, UnitVectors::rows));
  }

  // Tokens and their positions; `side` is "" or "source_".
  Wire embed(Wire table_wire, Wire tokens, const std::string& side, const SchemeRules& rules) {
    const std::int64_t time = tokens.shape()[1];
    Wire x = embedding(table_wire, tokens);
    if (config_.scale_embedding) x = x * std::sqrt(static_cast<double>(config_.width));
    const std::string name = "embedding." + side + "position";
    if (config_.positions == Positions::learned) {
      // Positions have no gain of their own: T-Fixup's is of tokens.
      ParameterSpec spec{.name = name, .init = Init::normal(config_.embedding_std), .role = "position"};
      rules.optimiser.apply("position", spec);
      x = add_positions(x, parameters_.make({time, config_.width}, spec));
    } else if (config_.positions == Positions::sinusoidal) {
      x = add_positions(x, sinusoidal_positions(graph_, name, time, config_.width, config_.dtype));
    }
    return config_.dropout ? dropout(x, dropout_, dropout_key_, side + "embedding") : x;
  }

  Wire add(Stack stack) {
    for (SublayerSite& site : stack.sites) model_.sites.push_back(std::move(site));
    for (Schedule& schedule : stack.schedules) model_.schedules.push_back(std::move(schedule));
    return stack.x;
  }

  Wire one_stack(Wire tokens) {
    StackConfig stack = stack_config();
    if (config_.family == Family::encoder) {
      stack.mask = Mask::full;
      stack.lengths = lengths("lengths");
    }
    head_rules_ = rules(stack);
    table_ = table("embedding.token", config_.vocabulary, head_rules_);
    const Wire x = add(build_stack(parameters_, scheme_, stack, embed(table_, tokens, "", head_rules_)));
    return config_.classes > 0 ? pooled(x, stack.lengths) : x;
  }

  // The mean over a sample's tokens; padding has weight 0.
  Wire pooled(Wire x, Wire sample_lengths) {
    const Shape& s = x.shape();
    const Wire weights = softmax(graph_.fill({{s[0], 1, s[1]}, config_.dtype}, 0), Mask::full, sample_lengths);
    return reshape(matmul(weights, x), {s[0], s[2]});
  }

  Wire encode_and_decode(Wire tokens) {
    const std::int64_t depth = config_.encoder_layers == 0 ? config_.layers : config_.encoder_layers;
    StackConfig below = stack_config(), above = stack_config();
    below.kind = StackKind::encoder;
    below.order.reset();
    below.layers = depth;
    below.other_layers = config_.layers;
    below.mask = Mask::full;
    below.lengths = lengths("source_lengths");
    above.kind = StackKind::decoder;
    above.other_layers = depth;
    above.memory_lengths = below.lengths;
    const SchemeRules encoder_rules = rules(below);
    head_rules_ = rules(above);
    const bool joint = config_.source_vocabulary == 0;
    const Wire source = ids("source", config_.source_time == 0 ? config_.time : config_.source_time);
    const Wire source_table = joint ? table("embedding.token", config_.vocabulary, encoder_rules)
                                    : table("embedding.source", config_.source_vocabulary, encoder_rules);
    table_ = joint ? source_table : table("embedding.token", config_.vocabulary, head_rules_);
    {
      const Wire x = embed(source_table, source, "source_", encoder_rules);
      const auto scope = graph_.scope("encoder");
      above.memory = add(build_stack(parameters_, scheme_, below, x));
    }
    const Wire x = embed(table_, tokens, "", head_rules_);
    const auto scope = graph_.scope("decoder");
    return add(build_stack(parameters_, scheme_, above, x));
  }

  void finish(std::int64_t outputs, Wire targets) {
    StackConfig stack = stack_config();
    const Variables numbers = stack_numbers(scheme_, stack, config_.width, 1, 1);
    const auto number = [&](const ExpressionPtr& e) { return evaluate(*e, numbers, print_expression(*e)); };
    Wire weight = config_.tied ? table_
                               : parameters_.make({config_.width, outputs},
                                                  outer("head.weight", "head", head_rules_, UnitVectors::columns));
    if (scheme_.head.gain != nullptr) {
      const double start = number(scheme_.head.gain);
      const double stored = scheme_.head.gain_stored == nullptr ? start : number(scheme_.head.gain_stored);
      if (stored == 0) fail("scheme '{}': head.gain must not start at 0", scheme_.name);
      ParameterSpec spec{.name = "head.gain", .init = Init::constant(stored), .role = "learned"};
      head_rules_.optimiser.apply("head", spec);
      const Wire gain = parameters_.make({outputs}, spec) * (start / stored);
      weight = weight * (config_.tied ? reshape(gain, {outputs, 1}) : gain);
    }
    Wire x = model_.hidden;
    if (scheme_.head.scale != nullptr) x = x * number(scheme_.head.scale);
    const Transpose transpose = config_.tied ? Transpose::yes : Transpose::no;
    const Wire smoothing = config_.smoothing ? graph_.input("smoothing", {{1}, config_.dtype}) : Wire();
    model_.loss = linear_cross_entropy(x, weight, targets, smoothing, {.weight = transpose});
    if (options_.logits) model_.logits = matmul_rows(x, weight, transpose);
  }

  Graph& graph_;
  const ModelConfig& config_;
  const ModelOptions& options_;
  const Scheme& scheme_;
  Parameters parameters_;
  Wire dropout_, dropout_key_;
  Wire table_;  // of the tokens that are predicted
  SchemeRules head_rules_;
  Model model_;
};

}  // namespace

Model build_model(Graph& graph, const ModelConfig& config, const ModelOptions& options) {
  return ModelBuilder(graph, config, options).build();
}

}  // namespace norma
