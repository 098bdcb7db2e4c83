#include "models/norm_sites.h"

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
  return apply_norm(info, x, wires);
}

}  // namespace norma
