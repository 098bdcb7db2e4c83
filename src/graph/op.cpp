#include "norma/graph/op.h"

#include <algorithm>

#include "norma/core/error.h"
#include "norma/graph/differentiate.h"
#include "norma/graph/graph.h"

namespace norma {

void Widths::all(bool narrow) {
  in.assign(in.size(), narrow);
  out.assign(out.size(), narrow);
}

void Widths::follow() { all(std::find(in.begin(), in.end(), true) != in.end()); }

Wires Op::vjp(const VjpContext& context) const {
  if (!has_reference()) fail("{} has no derivative", name());
  // Gradients stop at the inputs: where one input was computed from another, the outer walk takes care of that path.
  const int first_node = static_cast<int>(context.graph().nodes().size());
  const Wires out = reference(context.in);
  Wires wanted;
  for (std::size_t i = 0; i < context.in.size(); ++i) {
    if (context.needed[i]) wanted.push_back(context.in[i]);
  }
  Wires gradients = pull_back(out, context.dout, wanted, first_node);
  // A wire that is given twice has one gradient, the sum over both places.
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    if (std::find(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(k), wanted[k]) !=
        wanted.begin() + static_cast<std::ptrdiff_t>(k)) {
      gradients[k] = Wire();
    }
  }
  Wires result(context.in.size());
  for (std::size_t i = 0, k = 0; i < context.in.size(); ++i) {
    if (context.needed[i]) result[i] = gradients[k++];
  }
  return result;
}

Wires Op::reference(std::span<const Wire>) const {
  throw InternalError("internal error: " + std::string(name()) + " is elementary and has no reference composition");
}

double traffic(std::span<const Type> in, std::span<const Type> out) {
  double bytes = 0;
  for (const Type& type : in) bytes += static_cast<double>(type.bytes());
  for (const Type& type : out) bytes += static_cast<double>(type.bytes());
  return bytes;
}

Cost Op::cost(std::span<const Type> in, std::span<const Type> out) const {
  double elements = 0;
  for (const Type& type : out) elements += static_cast<double>(type.shape.elements());
  return {.flops = elements, .bytes = traffic(in, out)};
}

}  // namespace norma
