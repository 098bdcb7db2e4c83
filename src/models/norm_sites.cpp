#include "models/norm_sites.h"

#include <numeric>

#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/norms/row.h"
#include "norma/ops/elementwise.h"
#include "norma/schemes/trace.h"

namespace norma {

Wire NormSites::apply(std::string_view name, std::string_view site, Wire x, std::string_view role,
                      const OptimiserRules& rules) {
  if (name == "unit") return scale_norm(x, {}, kShortestUnit);
  const auto scope = parameters_.graph().scope(site);
  const NormInfo& info = norm_called(name, configured_);
  const std::int64_t width = x.shape().channels();
  NormWires wires;
  for (const NormTensor& tensor : info.parameters) {
    // "1 + w": what is stored, decayed and initialised is the distance from one.
    const bool from_one = scheme_.norm_gain == "1 + w" && tensor.name == "gain";
    const double start = tensor.initial_value(width) - (from_one ? 1 : 0);
    ParameterSpec spec{.name = std::string(tensor.name), .init = Init::constant(start), .role = "norm"};
    rules.apply(role, spec);
    const Wire stored = parameters_.share(tensor.shape(width), spec);
    wires.at(tensor.name) = from_one ? stored + 1.0 : stored;
  }
  NormSettings settings;
  if (const Wire graph_of = parameters_.graph().find("graph_of")) {
    // Of a batch of graphs: norms over nodes are of each graph, and there is room for nodes that are not there.
    if (info.kind == NormKind::batch)
      fail(
          "{} over a batch of graphs would count the room for nodes that are not there; expected graphnorm, which is "
          "of each graph, or a norm of single nodes such as layernorm",
          info.title);
    settings.segments = {.ids = graph_of, .count = parameters_.graph().find("targets").shape()[0]};
  }
  settings.groups = groups_ > 0 ? groups_ : std::gcd(settings.groups, width);
  if (statistics_ == BatchStatistics::running) settings.mode = NormMode::evaluate;
  if (statistics_ != BatchStatistics::of_batch) add_statistics(info, x, wires);
  return apply_norm(info, x, wires, settings);
}

void NormSites::add_statistics(const NormInfo& info, Wire x, NormWires& wires) {
  if (info.states.empty()) return;
  if (statistics_ == BatchStatistics::followed && x.shape()[0] == 1)
    fail(
        "{} over a batch of 1: its statistics would be those of the one sample that they are applied to, and in "
        "evaluation others; expected a batch of at least 2, a norm of single samples such as group or layer, or "
        "model.norm_statistics = \"frozen\"",
        info.title);
  Graph& graph = parameters_.graph();
  const bool again = static_cast<bool>(graph.find(graph.full_name(info.states.front().name)));
  if (again && statistics_ == BatchStatistics::followed) return;
  const std::int64_t width = x.shape().channels();
  for (const NormTensor& tensor : info.states) {
    wires.at(tensor.name) = parameters_.keep(
        tensor.shape(width),
        {.name = std::string(tensor.name), .init = Init::constant(tensor.initial_value(width)), .role = "norm"});
  }
}

}  // namespace norma
