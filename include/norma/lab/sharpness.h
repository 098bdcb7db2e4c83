// Curvature of the loss on one batch: the largest eigenvalue of the Hessian, plain and as Adam sees it, and the
// learning rates that it bears (Cohen et al. 2021, 2022).
#pragma once

#include <vector>

#include "norma/lab/subject.h"

namespace norma {

struct SharpnessOptions {
  int iterations = 20;  // of Lanczos; each takes two gradients
  int batches = 8;      // that Adam's second moment is averaged over
  double beta1 = 0.9;
  double eps = 1e-8;
};

// By member. Hv is (gradient(theta + e v) - gradient(theta - e v)) / 2e, in double precision.
struct Sharpness {
  std::vector<double> plain;            // lambda_max(H)
  std::vector<double> preconditioned;   // lambda_max(P^-1/2 H P^-1/2), P = diag(sqrt(mean g^2) + eps), without
                                        // embedding tables: a few batches do not know the moment of a rare token
  std::vector<double> largest_sgd_lr;   // 2 / plain
  std::vector<double> largest_adam_lr;  // (2 + 2 beta1) / (1 - beta1) / preconditioned: 38 / lambda at 0.9
};

Sharpness measure_sharpness(const Subject& subject, const SharpnessOptions& options = {});

}  // namespace norma
