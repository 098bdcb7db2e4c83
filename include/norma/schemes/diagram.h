// One layer of a scheme as a drawing made from its formula: streams run from bottom to top, branches beside them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "norma/schemes/branch_kinds.h"
#include "norma/schemes/scheme.h"

namespace norma {

struct DiagramOptions {
  std::int64_t layers = 12;
  std::int64_t layer = 0;  // which one to draw, from 1; 0: the first with the wiring that most layers have
  std::int64_t width = 512;
  std::int64_t heads = 8;
  std::vector<const BranchKind*> branches = usual_branches();  // of a layer, in order
};

// Layers that a formula's conditions wire alike, from first to last.
struct Wiring {
  std::vector<std::pair<std::int64_t, std::int64_t>> layers;  // ranges, both ends included
  std::int64_t count = 0;
};

// The different wirings of a stack, the most common first. Throws Error for conditions that have no value.
std::vector<Wiring> wirings(const Scheme& scheme, const DiagramOptions& options = {});

// "layers 1, 4-12"
std::string print_layers(const Wiring& wiring);

// At most kDiagramColumns wide, with box-drawing characters. What the language knows and the drawing does not appears
// as a labelled box. Throws Error when the scheme cannot be drawn at this place.
constexpr std::size_t kDiagramColumns = 100;
std::string diagram_text(const Scheme& scheme, const DiagramOptions& options = {});

// A self-contained file that follows the reader's light or dark colours.
std::string diagram_svg(const Scheme& scheme, const DiagramOptions& options = {});

}  // namespace norma
