// The Jacobian of a stack as products in a graph; see norma/lab/jacobian.h.
#pragma once

#include <string>

#include "norma/lab/jacobian.h"

namespace norma {

// Where a Jacobian begins and ends: both have one shape.
struct StackEnds {
  Wire in, out;
  std::string part = {};  // "down.layers.0 to down.layers.3"; empty: the whole of the last stack
};

// The last stack, or where its stream changes its shape the longest part of any stack that keeps it, the first of
// several. Throws Error where no layer does, and for a final formula behind a part or before pooled answers.
StackEnds ends_of(const Model& model, const ModelConfig& config, StackEnd end);

// Adds the product J^T v: input "v" in, output "pulled" out, both [batch, time, width].
Wire trace_pull(Graph& graph, const StackEnds& stack);

// Of the stream where the Jacobian begins, of one sample: its Jacobian has as many rows and columns.
std::int64_t numbers_of_a_sample(const ModelConfig& config, StackEnd end);

// Whether what one sequence of the batch puts out depends on what enters another, as behind a norm over the batch.
bool sequences_touch(const Subject& subject, StackEnd end);

// Those of the first sequence, where sequences do not touch.
std::vector<std::vector<double>> all_singular_values(const Subject& subject, StackEnd end);

}  // namespace norma
