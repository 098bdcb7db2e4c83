#include "models/model_builder.h"

#include "norma/core/error.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/dropout.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"

namespace norma {

ModelBuilder::ModelBuilder(Graph& graph, const ModelConfig& config, const ModelOptions& options)
    : graph_(graph),
      config_(config),
      options_(options),
      parameters_(graph, config.dtype),
      sites_(config.family->sites(config)) {
  if (config.dropout) {
    dropout_ = graph.input("dropout", {{1}, config.dtype});
    dropout_key_ = graph.input("dropout_key", {{4}, DType::i32});
  }
  for (const InputSpec& input : config.family->inputs(config)) {
    const bool numbers = input.content == InputSpec::Content::numbers;
    graph.input(input.name, {input.shape(), numbers ? config.dtype : DType::i32});
  }
}

Wire ModelBuilder::input(std::string_view name) const {
  const Wire found = graph_.find(name);
  NORMA_ASSERT(found);
  return found;
}

StackConfig ModelBuilder::stack_config(std::size_t index) const {
  const StackSites& sites = sites_.at(index);
  StackConfig stack{.branches = sites.branches,
                    .layers = sites.layers,
                    .width = config_.width,
                    .widths = sites.widths,
                    .since = sites.since,
                    .heads = config_.heads,
                    .hidden = config_.hidden,
                    .activation = config_.activation,
                    .norm = config_.norm,
                    .norm_groups = config_.norm_groups,
                    .statistics = statistics(),
                    .dropout = dropout_,
                    .dropout_key = dropout_key_,
                    .kind = sites.kind,
                    .other_layers = sites.other_layers,
                    .kv_heads = config_.kv_heads,
                    .gated = config_.gated,
                    .rope = config_.positions == Positions::rope,
                    .biases = config_.biases,
                    .qk_norm = config_.qk_norm,
                    .weights = config_.weights,
                    .weight_form = config_.weight_form,
                    .constants = config_.constants,
                    .profile = options_.profile};
  stack.order = order_of(index);
  return stack;
}

// The part of the order that is this stack's, whose layers count from 0. A layer that there is not goes to the nearest
// stack, which refuses it.
std::optional<LayerOrder> ModelBuilder::order_of(std::size_t index) const {
  const std::size_t begin = first_of_last_stream(sites_);
  if (!options_.order || index < begin) return std::nullopt;
  std::int64_t first = 0;
  for (std::size_t i = begin; i < index; ++i) first += sites_[i].layers;
  const auto own = [&](std::int64_t layer) {
    const bool before = layer < first && index > begin;
    const bool behind = layer >= first + sites_[index].layers && index + 1 < sites_.size();
    return !before && !behind;
  };
  LayerOrder order;
  for (const std::int64_t layer : options_.order->layers) {
    if (own(layer)) order.layers.push_back(layer - first);
  }
  if (options_.order->beside >= 0 && own(options_.order->beside)) order.beside = options_.order->beside - first;
  return order;
}

BatchStatistics ModelBuilder::statistics() const {
  const NormStatistics wanted = config_.norm_statistics;
  if (options_.purpose == Purpose::look || wanted == NormStatistics::batch) return BatchStatistics::of_batch;
  const bool follow = wanted == NormStatistics::running && options_.purpose == Purpose::train;
  return follow ? BatchStatistics::followed : BatchStatistics::running;
}

SchemeRules ModelBuilder::rules(const StackConfig& stack) const {
  return rules_of(scheme(), stack_numbers(scheme(), stack, config_.width, 1, 1));
}

Wire ModelBuilder::through(const StackConfig& config, Wire x) {
  if (config_.stream == StreamWidth::bf16) x.graph().narrow_stream(x);
  Stack stack = build_stack(parameters_, scheme(), config, x);
  for (SublayerSite& site : stack.sites) model_.sites.push_back(std::move(site));
  for (Schedule& schedule : stack.schedules) model_.schedules.push_back(std::move(schedule));
  return stack.x;
}

Wire ModelBuilder::dropped(Wire x, const std::string& site) const {
  return config_.dropout ? dropout(x, dropout_, dropout_key_, site) : x;
}

ParameterSpec ModelBuilder::outer(const char* name, const char* role, double deviation, const SchemeRules& rules,
                                  UnitVectors unit) const {
  const double start = rules.init.deviation_of(role).value_or(deviation);
  ParameterSpec spec{.name = name,
                     .init = Init::normal(start * rules.init.gain_of(role)),
                     .role = role,
                     .unit = scheme().weights.unit ? unit : UnitVectors::none};
  rules.optimiser.apply(role, spec);
  return spec;
}

void ModelBuilder::classify(Wire hidden, std::int64_t classes, const StackConfig& stack, const SchemeRules& rules,
                            Wire table) {
  const HeadSpec& head = scheme().head;
  const Variables numbers = stack_numbers(scheme(), stack, config_.width, 1, 1);
  const auto number = [&](const ExpressionPtr& e) { return evaluate(*e, numbers, print_expression(*e)); };
  const bool tied = static_cast<bool>(table);
  Wire weight = tied ? table
                     : parameters_.make({hidden.shape().channels(), classes},
                                        outer("head.weight", "head", config_.head_std, rules, UnitVectors::columns));
  if (head.gain != nullptr) {
    const double start = number(head.gain);
    const double stored = head.gain_stored == nullptr ? start : number(head.gain_stored);
    if (stored == 0) fail("scheme '{}': head.gain must not start at 0", scheme().name);
    ParameterSpec spec{.name = "head.gain", .init = Init::constant(stored), .role = "learned"};
    rules.optimiser.apply("head", spec);
    const Wire gain = parameters_.make({classes}, spec) * (start / stored);
    weight = weight * (tied ? reshape(gain, {classes, 1}) : gain);
  }
  model_.hidden = hidden;
  const Wire x = head.scale != nullptr ? hidden * number(head.scale) : hidden;
  const Transpose transpose = tied ? Transpose::yes : Transpose::no;
  const Wire smoothing = config_.smoothing ? graph_.input("smoothing", {{1}, config_.dtype}) : Wire();
  const Wire targets = input("targets");
  model_.loss = linear_cross_entropy(x, weight, targets, smoothing, {.weight = transpose});
  if (config_.mixture) {
    const Wire share = graph_.input("mixture", {{1}, config_.dtype});
    const Wire second = graph_.input("mixed_targets", targets.type());
    const Wire other = linear_cross_entropy(x, weight, second, smoothing, {.weight = transpose});
    model_.loss = model_.loss * (1.0 - share) + other * share;
  }
  if (options_.logits) model_.logits = matmul_rows(x, weight, transpose);
}

void ModelBuilder::regress(Wire hidden, Wire numbers) {
  model_.hidden = hidden;
  model_.loss = mean_all(square(numbers - input("answer")));
  if (options_.logits) model_.logits = numbers * 1.0;
}

Model ModelBuilder::take() {
  model_.parameters = parameters_.specs();
  model_.kept = parameters_.kept();
  return std::move(model_);
}

}  // namespace norma
