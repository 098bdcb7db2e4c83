// One number that reaches kernels as data: a [1] wire, or a value known when the graph is built.
#pragma once

#include "norma/graph/wire.h"

namespace norma {

class Scalar {
 public:
  Scalar(double number) : number_(number) {}  // NOLINT: implicit on purpose, so that `1e-5` and a wire read alike
  Scalar(Wire wire) : wire_(wire) {}          // NOLINT

  // As a wire of x's graph and dtype, shape [1].
  Wire beside(Wire x) const;

 private:
  Wire wire_;
  double number_ = 0;
};

}  // namespace norma
