// Reverse-mode differentiation as a graph transform: each op's vjp appends ordinary nodes.
#pragma once

#include <span>

#include "norma/graph/wire.h"

namespace norma {

// Gradients of a one-element loss by `wrt`. Throws Error naming the wire when one does not influence the loss.
Wires differentiate(Wire loss, std::span<const Wire> wrt);

// The general form: given gradients by `out` (empty = zero), the gradients by `wrt` (empty where there is none). Only
// nodes from `first_node` on are walked: what came before counts as given, even where one of `wrt` depends on another.
Wires pull_back(std::span<const Wire> out, std::span<const Wire> dout, std::span<const Wire> wrt, int first_node = 0);

}  // namespace norma
