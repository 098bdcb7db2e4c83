// Properties of LayerNorm beyond the conformance suite.
#include "check.h"
#include "norma/norms/row.h"

namespace norma {
namespace {

using test::check_gradients;

Wire weighted(Wire y) {
  // A loss whose gradient by y is neither constant nor orthogonal to anything.
  return sum_all(tanh(y) * y.graph().input("weights", y.type()));
}

TEST(LayerNorm, Gradients) {
  for (const std::int64_t width : {2, 31, 32, 33}) {
    check_gradients(
        [&](Graph& g) {
          const Type vector{{width}, DType::f64};
          const Wire x = g.input("x", {{7, width}, DType::f64});
          return weighted(layer_norm(x, g.parameter("gain", vector), g.parameter("bias", vector)));
        },
        {"x", "gain", "bias"}, {.tolerance = 1e-6});
  }
}

TEST(LayerNorm, SecondDerivative) {
  check_gradients(
      [](Graph& g) {
        const Type vector{{5}, DType::f64};
        const Wire x = g.input("x", {{3, 5}, DType::f64});
        const Wire y = layer_norm(x, g.parameter("gain", vector), g.parameter("bias", vector), 0.1);
        const Wire wrt[] = {x};
        return sum_all(square(differentiate(weighted(y), wrt)[0]));
      },
      {"x", "gain", "bias"}, {.tolerance = 1e-6});
}

}  // namespace
}  // namespace norma
