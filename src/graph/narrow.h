// Mixed precision as a pass: which tensors are stored as bf16, and the conversions between.
#pragma once

#include "norma/graph/graph.h"
#include "norma/graph/kernel.h"

namespace norma {

// Goes through the nodes in order. Each says by Op::choose which of its tensors are narrow; where that differs from
// what its inputs are, they are converted, once for all readers. Parameters are converted together, before anything
// else. What the host reads stays f32. Sums are as wide as their widest term, so a residual stream is f32 unless it
// begins narrow (Graph::narrow_stream). Where the backend has no kernel for what an op chose, the op stays wide.
void narrow(Graph& graph, const Backend& backend);

}  // namespace norma
