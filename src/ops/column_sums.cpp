#include "norma/ops/column_sums.h"

#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/ops/reduce.h"
#include "ops/check.h"

namespace norma {

std::vector<Type> ColumnSums::infer(std::span<const Type> in) const {
  if (in.empty() || in.size() > kMostColumnSums) fail("takes 1 to {} tensors, not {}", kMostColumnSums, in.size());
  std::vector<Type> out;
  for (const Type& x : in) {
    check_computes(x);
    if (x.shape.rank() == 0) fail("sums over rows, but {} has none", x.str());
    out.push_back({{x.shape.channels()}, x.dtype});
  }
  return out;
}

Wires ColumnSums::reference(std::span<const Wire> in) const {
  Wires sums;
  for (const Wire& x : in) sums.push_back(sum_to(x, {x.shape().channels()}));
  return sums;
}

Cost ColumnSums::cost(std::span<const Type> in, std::span<const Type> out) const {
  double flops = 0;
  for (const Type& x : in) flops += static_cast<double>(x.shape.elements());
  return {.flops = flops, .bytes = traffic(in, out)};
}

void ColumnSums::choose(Widths& widths) const { widths.out.assign(widths.out.size(), false); }

Wires column_sums(std::span<const Wire> x) { return x[0].graph().apply(std::make_shared<ColumnSums>(), x); }

}  // namespace norma
