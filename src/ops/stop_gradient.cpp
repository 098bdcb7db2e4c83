#include "norma/ops/stop_gradient.h"

#include "norma/graph/graph.h"

namespace norma {

Wire stop_gradient(Wire x) {
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<StopGradient>(), in)[0];
}

}  // namespace norma
