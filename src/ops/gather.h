// Ops of one kind that each take a tensor become one op over several, for devices that pay for launches.
#pragma once

#include "norma/graph/rewrite.h"

namespace norma {

// The tensors wait for the op, so they must be few and small beside what a layer has; large ones fill a device alone.
struct GatherLimits {
  int farthest = 1;             // nodes between two that join
  std::size_t most = 1;         // tensors
  std::int64_t most_bytes = 0;  // of all of them
};

// Joins node `index` with the next that `belongs`: `op` in the place of the latter, over the tensors of both. False
// where there is none in reach, or a result is read before.
bool gather(Rewriter& rewriter, int index, bool (*belongs)(const Rewriter& rewriter, int index), OpPtr op,
            const GatherLimits& limits);

}  // namespace norma
