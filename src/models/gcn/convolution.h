// The branch of graph networks: what a node makes of its neighbours. One kind of branch, four convolutions.
#pragma once

#include "norma/models/layer_branch.h"
#include "norma/models/model.h"

namespace norma {

// Reads the inputs "edges" and "degrees" of the graph (docs/families.md).
LayerBranch graph_convolution_branch(GraphConvolution convolution);

}  // namespace norma
