#include "norma/models/budget.h"

#include <cctype>
#include <set>
#include <string>

namespace norma {
namespace {

// "layers.3.attn.norm1" for "layers.3.attn.norm1.gain"; "" for a parameter that belongs to no norm.
std::string norm_site(const std::string& parameter) {
  const std::size_t last = parameter.rfind('.');
  if (last == std::string::npos) return "";
  const std::string scope = parameter.substr(0, last);
  const std::size_t dot = scope.rfind('.');
  const std::string name = dot == std::string::npos ? scope : scope.substr(dot + 1);
  const bool numbered =
      name.starts_with("norm") && name.size() > 4 && std::isdigit(static_cast<unsigned char>(name[4])) != 0;
  return numbered || name.ends_with("_norm") ? scope : "";
}

}  // namespace

Budget stack_budget(const Scheme& scheme, const StackConfig& config, std::int64_t width) {
  Graph graph;
  Parameters parameters(graph, DType::f32);
  build_stack(parameters, scheme, config, graph.input("x", {{1, 1, width}, DType::f32}));
  Budget budget;
  std::set<std::string> sites;
  for (const Wire& wire : graph.parameters()) {
    budget.stack_parameters += wire.shape().elements();
    const std::string site = norm_site(wire.name());
    if (site.empty()) continue;
    sites.insert(site);
    budget.norm_parameters += wire.shape().elements();
  }
  budget.norm_instances = static_cast<std::int64_t>(sites.size());
  return budget;
}

}  // namespace norma
