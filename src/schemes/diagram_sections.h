// The formulas of one layer, bottom to top, and where in the stack each of them stands.
#pragma once

#include "norma/schemes/diagram.h"
#include "norma/schemes/place.h"

namespace norma {

struct DiagramSection {
  const Formula* formula = nullptr;
  std::string title = {};
  std::string branch = {};  // what f stands for; empty: branches by name
  std::int64_t offset = 0;  // of the sublayer in the layer
};

std::vector<DiagramSection> sections_of(const Scheme& scheme, const DiagramOptions& options);
Place place_of(const DiagramOptions& options, std::int64_t layer, std::int64_t offset);

}  // namespace norma
