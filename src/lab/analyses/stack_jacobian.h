// The Jacobian of a stack as products in a graph; see norma/lab/jacobian.h.
#pragma once

#include <string>

#include "norma/lab/jacobian.h"

namespace norma {

struct StackEnds {
  Wire in, out;
};

// Throws Error for models whose output is not one vector for every token.
StackEnds ends_of(const Model& model, const ModelConfig& config, StackEnd end);

// Adds the product J^T v: input "v" in, output "pulled" out, both [batch, time, width].
Wire trace_pull(Graph& graph, const StackEnds& stack);

// Whether what one sequence of the batch puts out depends on what enters another, as behind a norm over the batch.
bool sequences_touch(const Subject& subject, StackEnd end);

// Those of the first sequence, where sequences do not touch.
std::vector<std::vector<double>> all_singular_values(const Subject& subject, StackEnd end);

}  // namespace norma
