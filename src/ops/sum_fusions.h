// Rewrites of sums over all rows of a tensor, which gradients by biases are.
#pragma once

#include "norma/graph/rewrite.h"

namespace norma {

// Whether a node is the sums over all rows of one tensor, or of several.
bool sums_columns(const Rewriter& rewriter, int index);

// Sums over rows of different tensors -> one op in the place of the last.
bool gather_column_sums(Rewriter& rewriter, int index);

// The sums over rows of what meets a derivative at the end of a product -> partial sums from there.
bool slope_lines(Rewriter& rewriter, int index);

}  // namespace norma
