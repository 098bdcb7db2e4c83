#include "norma/models/fusions.h"

#include "norma/norms/fusions.h"
#include "norma/ops/fusions.h"

namespace norma {

std::vector<Rewrite> all_fusions() {
  // Norms first: a sum that can become part of a norm saves more than one that becomes part of a product.
  std::vector<Rewrite> all = norm_fusions();
  for (Rewrite& rewrite : op_fusions()) all.push_back(std::move(rewrite));
  return all;
}

}  // namespace norma
