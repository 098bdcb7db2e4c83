// Between formula and drawing: the parts of a layer, and where they stand on a grid of bands (rows) and lanes
// (columns).
#pragma once

#include <string>
#include <vector>

#include "norma/schemes/diagram.h"

namespace norma {

struct DiagramPart {
  enum class Kind { input, output, box, pill, add, product };
  enum class Tone { plain, norm, branch, scale, learned };
  struct Operand {
    int part;
    bool minus = false;
  };

  Kind kind = Kind::box;
  Tone tone = Tone::plain;
  std::string label = {};
  std::string detail = {};  // a second line
  std::string name = {};    // what the formula calls the result
  std::vector<Operand> operands = {};
  int section = 0;
  // Set by the layout.
  int primary = 0;  // the operand that arrives from below, in the same lane
  int lane = -1;
  int band = -1;
};

struct DiagramParts {
  std::vector<DiagramPart> parts;     // operands come before their readers
  std::vector<std::string> sections;  // titles, bottom to top
  std::string heading;
  std::vector<std::string> notes;  // what the symbols stand for
};

// The parts of one layer and, after the last layer, of the final formula.
DiagramParts diagram_parts(const Scheme& scheme, const DiagramOptions& options);

// A branch by its name in a formula, and what the scheme asks of it beyond the plain one.
std::string branch_title(const std::string& name);
std::string branch_detail(const Scheme& scheme, const std::string& name);
bool mentions_learned(const Scheme& scheme, const Expression& e);
// An expression as a factor, in parentheses where it needs them.
std::string factor_text(const Expression& e);

// What the names of the drawn formulas stand for, one line each.
std::vector<std::string> diagram_legend(const Scheme& scheme, const DiagramOptions& options, std::int64_t layer);

// One row of the grid, counted from the bottom.
struct DiagramBand {
  enum class Kind { parts, fork, divider };
  Kind kind = Kind::parts;
  std::vector<int> parts = {};  // those that stand side by side
  int from = 0;                 // fork: the lane it leaves
  std::vector<int> to = {};     // fork: the lanes it reaches
  int section = 0;              // divider
};

// A vertical line in a lane, from the top of one band to another: into the bottom of what stands there, or to the
// height at which it turns aside.
struct DiagramLine {
  int lane;
  int from, to;
};

// A value that reaches a part from the side, at the height of the part.
struct DiagramMerge {
  int band;
  int from, to;  // lanes
  bool minus;
};

struct DiagramLayout {
  std::vector<DiagramPart> parts;
  std::vector<DiagramBand> bands;
  std::vector<DiagramLine> lines;
  std::vector<DiagramMerge> merges;
  int lanes = 0;
};

DiagramLayout place_parts(const DiagramParts& parts);

}  // namespace norma
