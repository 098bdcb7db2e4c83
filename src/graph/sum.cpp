#include "norma/graph/sum.h"

#include <algorithm>

#include "norma/core/error.h"
#include "norma/graph/graph.h"

namespace norma {

std::vector<Type> Sum::infer(std::span<const Type> in) const {
  if (in.size() < 2) fail("needs at least two terms");
  for (const Type& type : in) {
    if (type != in[0]) fail("all terms must have one type, but {} and {} were given", in[0].str(), type.str());
  }
  if (in[0].dtype != DType::f32 && in[0].dtype != DType::f64) fail("adds f32 or f64, not {}", name_of(in[0].dtype));
  return {in[0]};
}

void Sum::choose(Widths& widths) const {
  widths.out = {std::find(widths.in.begin(), widths.in.end(), false) == widths.in.end()};
}

Wires Sum::vjp(const VjpContext& context) const { return Wires(context.in.size(), context.dout[0]); }

Cost Sum::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = static_cast<double>(in.size() - 1) * static_cast<double>(out[0].shape.elements()),
          .bytes = traffic(in, out)};
}

Wire sum(std::span<const Wire> terms) {
  if (terms.empty()) fail("sum: needs at least one term");
  if (terms.size() == 1) return terms[0];
  // Long sums become a left-to-right chain, so that not all terms have to live until the last one is there.
  constexpr std::size_t kMost = 23;
  static const auto op = std::make_shared<const Sum>();
  Graph& graph = terms[0].graph();
  Wire total = graph.apply(op, terms.first(std::min(terms.size(), kMost)))[0];
  for (std::size_t done = kMost; done < terms.size();) {
    Wires next = {total};
    for (; done < terms.size() && next.size() < kMost; ++done) next.push_back(terms[done]);
    total = graph.apply(op, next)[0];
  }
  return total;
}

}  // namespace norma
