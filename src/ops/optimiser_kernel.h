// What an optimiser's kernel is called with: a piece of one parameter, and the numbers of this step.
#pragma once

#include <cstdint>

#include "norma/ops/optimiser.h"

namespace norma {

template <typename T>
struct OptimiserRates {
  T lr, shrink, l2, beta1, beta2, eps, correction1, root_correction2, rectify, scale;
};

template <typename T>
struct OptimiserTile {
  T* p;
  const T* g;
  T* m;  // the first state, or the only one
  T* v;
  std::int64_t n;
  OptimiserRates<T> rates;
};

}  // namespace norma
