// The places of a stack and what is known of them before anything is built: their order, their numbers, and the names
// that formulas mention there. Layers are counted from 1, as formulas do, but for those of an order.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "norma/models/stack.h"

namespace norma {

class StackPlaces {
 public:
  // Looks at both for as long as it lives.
  StackPlaces(const Scheme& scheme, const StackConfig& config) : scheme_(scheme), config_(config) {}

  std::vector<std::int64_t> order() const;  // layers from 0, as they are evaluated
  Variables numbers(std::int64_t layer, std::int64_t sublayer) const;

  // Sublayers are counted through the stack.
  std::int64_t first_sublayer(std::int64_t layer) const;
  std::int64_t last_sublayer() const;

  // What the formulas of a layer mention, and those of all layers, the streams and the final formula.
  std::set<std::string> names_of_layer(std::int64_t layer) const;
  std::set<std::string> names_of_stack() const;

 private:
  const Scheme& scheme_;
  const StackConfig& config_;
};

}  // namespace norma
