// Ops that a backend has no kernel for become their reference compositions.
#pragma once

#include "norma/graph/graph.h"
#include "norma/graph/kernel.h"

namespace norma {

// Throws Error naming the op, its inputs and the backend where there is neither a kernel nor a reference.
void lower(Graph& graph, const Backend& backend);

}  // namespace norma
