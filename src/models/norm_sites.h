// Norms of one stack, made where a formula or a branch calls them.
#pragma once

#include <string_view>

#include "norma/models/parameters.h"
#include "norma/models/rules.h"
#include "norma/models/stack.h"
#include "norma/norms/norm.h"
#include "norma/schemes/scheme.h"

namespace norma {

// Whether positions are pixels of images, whose number a model knows, or those of sequences of any length.
enum class NormPositions { sequence, image };

class NormSites {
 public:
  NormSites(Parameters& parameters, const Scheme& scheme, NormKind configured,
            BatchStatistics statistics = BatchStatistics::of_batch, std::int64_t groups = 0,
            NormPositions positions = NormPositions::sequence)
      : parameters_(parameters),
        scheme_(scheme),
        configured_(configured),
        statistics_(statistics),
        groups_(groups),
        positions_(positions) {}

  // A norm of that name ("norm", "rmsnorm", "unit", ...) over the last axis of x, its parameters under the open scope.
  // `role` is whose rules they follow. Throws Error where a statistic would be of a single number.
  Wire apply(std::string_view name, std::string_view site, Wire x, std::string_view role, const OptimiserRules& rules);

 private:
  // Running statistics of a norm that has some; those of one that is applied twice follow its first input.
  void add_statistics(const NormInfo& info, Wire x, NormWires& wires);

  std::int64_t groups_of(Wire x) const;

  Parameters& parameters_;
  const Scheme& scheme_;
  NormKind configured_;
  BatchStatistics statistics_;
  std::int64_t groups_;  // of GroupNorm; 0: the customary number, or what of it divides the channels
  NormPositions positions_;
};

}  // namespace norma
