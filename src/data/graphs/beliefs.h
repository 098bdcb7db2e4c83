// Belief propagation on a stochastic block model: what each node's class most likely is, given everything else.
#pragma once

#include <vector>

#include "data/graphs/graph_source.h"

namespace norma {

// [nodes, classes]; `evidence` of the same shape are chances by what is known of each node alone, up to a factor;
// `same` and `others` are the chances that two nodes of one class, or of two, are joined.
std::vector<double> propagate_beliefs(const GraphData& data, const std::vector<double>& evidence, double same,
                                      double others);

}  // namespace norma
