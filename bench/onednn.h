// What oneDNN itself makes of the convolutions of a model: with layouts of its own choice, so that nothing is
// reordered, and with its own threads.
#pragma once

#include "norma/graph/graph.h"

namespace norma::bench {

// Seconds of one run of all convolutions of the graph, forward and both gradients, one after another; the best of some.
double onednn_convolution_seconds(const Graph& graph, int threads, double seconds);

}  // namespace norma::bench
