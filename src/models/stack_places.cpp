#include "models/stack_places.h"

#include <numeric>

#include "models/learned.h"
#include "models/stack_check.h"
#include "norma/core/error.h"

namespace norma {

std::vector<std::int64_t> StackPlaces::order() const {
  std::vector<std::int64_t> all(static_cast<std::size_t>(config_.layers));
  std::iota(all.begin(), all.end(), 0);
  if (!config_.order) return all;
  for (const std::int64_t layer : config_.order->layers) {
    if (layer < 0 || layer >= config_.layers) fail("layer {} of a stack of {}", layer, config_.layers);
  }
  return config_.order->layers;
}

Variables StackPlaces::numbers(std::int64_t layer, std::int64_t sublayer) const {
  const std::int64_t width =
      config_.widths.empty() ? config_.width : config_.widths[static_cast<std::size_t>(layer - 1)];
  return stack_numbers(scheme_, config_, width, layer, sublayer);
}

std::int64_t StackPlaces::first_sublayer(std::int64_t layer) const {
  return sublayers_before(config_.branches, layer - 1) + 1;
}

std::int64_t StackPlaces::last_sublayer() const { return sublayers_before(config_.branches, config_.layers); }

std::set<std::string> StackPlaces::names_of_layer(std::int64_t layer) const {
  std::set<std::string> used;
  if (scheme_.learned.empty()) return used;
  std::int64_t k = first_sublayer(layer);
  if (scheme_.formula("layer") != nullptr) {
    add_names(*layer_formula(scheme_, config_), numbers(layer, k), used);
    return used;
  }
  for (const LayerBranch& branch : config_.branches) {
    if (branch.in(layer - 1)) add_names(*branch_formula(scheme_, *branch.kind), numbers(layer, k++), used);
  }
  return used;
}

std::set<std::string> StackPlaces::names_of_stack() const {
  std::set<std::string> used;
  for (std::int64_t layer = 1; layer <= config_.layers; ++layer) used.merge(names_of_layer(layer));
  for (const NamedExpression& stream : scheme_.streams) add_names(*stream.value, numbers(1, 1), used);
  if (const Formula* final = scheme_.formula("final"); final != nullptr && config_.ends)
    add_names(*final, numbers(config_.layers, last_sublayer()), used);
  return used;
}

Variables stack_numbers(const Scheme& scheme, const StackConfig& config, std::int64_t width, std::int64_t l,
                        std::int64_t k) {
  const Place place{.stack = config.kind,
                    .layers = config.layers,
                    .other_layers = config.other_layers,
                    .width = width,
                    .heads = config.heads,
                    .layer = l,
                    .sublayer = k,
                    .sublayers = sublayers_before(config.branches, config.layers),
                    .since = config.since.empty() ? k - 1 : config.since[static_cast<std::size_t>(l - 1)]};
  return numbers_at(scheme, place, config.constants);
}

}  // namespace norma
