// Softmax cross-entropy of rows and its gradient as cases, with a plain reference in double.
#pragma once

#include "bench/cuda/kernel_case.h"

namespace norma::bench {

enum class CrossEntropyTargets { ordinary, some_ignored, one_unknown, all_ignored };

struct CrossEntropySetup {
  std::int64_t rows = 1, classes = 1;
  double smoothing = 0;
  CrossEntropyTargets targets = CrossEntropyTargets::ordinary;
  std::int64_t shift = 0;  // bytes, of the logits against 256
};

KernelCase cross_entropy_case(const CrossEntropySetup& setup);
KernelCase cross_entropy_backward_case(const CrossEntropySetup& setup);  // over the logits

}  // namespace norma::bench
