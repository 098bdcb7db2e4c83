// What activations and gated units share: what one element costs, and how many a tile holds.
#pragma once

#include "norma/graph/op.h"

namespace norma {

constexpr double kFlopsPerActivation = 10;  // an exponential, a division and a few products
constexpr std::int64_t kActivationsPerTile = 8192;

inline Cost activation_cost(std::span<const Type> in, std::span<const Type> out) {
  return {.flops = kFlopsPerActivation * static_cast<double>(out[0].shape.elements()), .bytes = traffic(in, out)};
}

}  // namespace norma
