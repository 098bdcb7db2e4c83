#include "norma/norms/scalar.h"

#include "norma/graph/graph.h"

namespace norma {

Wire Scalar::beside(Wire x) const { return wire_ ? wire_ : x.graph().fill({{1}, x.dtype()}, number_); }

}  // namespace norma
