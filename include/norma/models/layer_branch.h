// The branches of a layer: each a kind of the table and what builds it.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "norma/models/branches.h"
#include "norma/models/rules.h"
#include "norma/schemes/branch_kinds.h"

namespace norma {

class BranchChoice;  // what the scheme says of it, models/options.h
struct StackConfig;

// A branch at the place where a formula calls it.
struct BranchCall {
  Parameters& parameters;  // under the scope of the branch
  Wire in;
  const StackConfig& stack;
  const BranchChoice& options;
  const SchemeRules& rules;  // at this layer
  WeightStyle style;
  NormMaker norm;
  Wire& carried;           // what this branch of the layer below left for it, empty at first
  std::int64_t layer = 0;  // from 0
  Wire read = {};          // of a skip: what the branch read; empty where it was not called
};
using BranchBuilder = std::function<Wire(const BranchCall&)>;

struct LayerBranch {
  const BranchKind* kind = nullptr;
  BranchBuilder build = nullptr;
  // Of a branch that can carry scores from layer to layer, for the theory: the same without options, with what its
  // scores and what its values read apart.
  std::function<Wire(const BranchCall&, Wire values)> apart = nullptr;
  // Of a branch that changes the shape of the stream: what it is added to is made of a stream of the old shape.
  BranchBuilder skip = nullptr;
  // Of a branch that changes the shape of the stream before its formula begins: what the stream becomes.
  BranchBuilder enter = nullptr;
  // Layers of the stack that have it, from 0; empty: all of them.
  std::set<std::int64_t> layers = {};

  bool in(std::int64_t layer) const { return layers.empty() || layers.contains(layer); }
};
using LayerBranches = std::vector<LayerBranch>;

// Of all layers before this one (from 0) together.
std::int64_t sublayers_before(const LayerBranches& branches, std::int64_t layer);

// Attention and feed-forward, and with a memory cross-attention between them: what transformers are made of. The mask
// is that of attention; all of a memory is seen.
LayerBranches transformer_layer(Memory memory = Memory::absent, Mask mask = Mask::causal);
// A feed-forward branch alone.
LayerBranch feed_forward_layer_branch();

bool reads_memory(const LayerBranches& layer);

}  // namespace norma
