// A small training step whose ops differ in tiles and phases: elementwise, broadcasts, sums, products, an update.
#pragma once

#include <memory>

#include "graph/test_ops.h"
#include "norma/graph/differentiate.h"
#include "norma/graph/plan.h"
#include "norma/ops/matmul.h"
#include "norma/ops/reduce.h"

namespace norma::test {

inline std::shared_ptr<const Plan> several_kernels() {
  Graph g;
  const Wire x = g.input("x", {{300, 96}, DType::f32});
  const Wire w = g.parameter("w", {{96}, DType::f32}), m = g.parameter("m", {{96, 160}, DType::f32});
  const Wire h = tanh(x * w) + exp(x * 0.1);
  const Wire centred = h - mean_last(h);
  const Wire y = tanh(matmul_rows(centred * rsqrt(mean_last(square(centred)) + 1e-5), m) * 0.1);
  g.watch("watched", mean_last(square(y)));
  const Wire loss = mean_all(square(y));
  g.output("loss", loss);
  const Wire wrt[] = {w, m, x};
  const Wires gradients = differentiate(loss, wrt);
  g.output("dx", gradients[2]);
  accumulate(w, gradients[0] * -0.5);
  accumulate(m, gradients[1] * -0.5);
  return test_plan(g);
}

}  // namespace norma::test
