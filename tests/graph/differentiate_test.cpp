// Derivatives of the elementary ops against central differences, first and second order.
#include "check.h"

namespace norma {
namespace {

using test::check_gradients;

TEST(Differentiate, ElementaryChain) {
  check_gradients(
      [](Graph& g) {
        const Wire x = g.input("x", {{3, 5}, DType::f64}), w = g.parameter("w", {{5}, DType::f64});
        return sum_all(tanh(x * w) + exp(x * 0.3) * sigmoid(w));
      },
      {"x", "w"});
}

TEST(Differentiate, SecondOrder) {
  check_gradients(
      [](Graph& g) {
        const Wire x = g.input("x", {{4, 3}, DType::f64});
        const Wire wrt[] = {x};
        const Wire first = differentiate(sum_all(tanh(x) * square(x)), wrt)[0];
        return sum_all(square(first));
      },
      {"x"}, {.tolerance = 1e-6});
}

}  // namespace
}  // namespace norma
