// One scheme explained at a given depth and width, before anything is trained: what it costs, its constants, and what
// the theory says of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "norma/lab/inspect.h"
#include "norma/models/budget.h"
#include "norma/theory/predict.h"

namespace norma {

// The model that costs and constants are given for, and the one that the theory is asked about: the latter is what
// inspect() takes unless told otherwise, so that both give the same numbers.
struct ExplainOptions {
  SchemeChoice scheme;
  Family family = "decoder";
  std::int64_t layers = 12;  // of each stack
  std::int64_t width = 512;
  std::int64_t heads = 8;
  std::optional<NormKind> norm = {};  // left out: that of the family's study
  std::vector<std::int64_t> depths = kInitialDepths;
  std::int64_t theory_width = 0;  // 0: what inspect() takes
  std::int64_t theory_time = initial_model().time;
};

// What one token, node or sample costs, in a whole model with the vocabulary that it has unless told otherwise.
struct UnitCost {
  std::string unit;            // "token"
  double flops = 0;            // of training: forward and backward
  double bytes = 0;            // least traffic of the forward pass, activations and weights
  std::int64_t positions = 0;  // of a sample in the stream
  std::string sizes;           // "image_height 16, ..., classes 10": of the model that was counted; empty: of tokens
};

// Constants of one stack at its first and its last layer.
struct StackNumbers {
  std::string scope;  // of the stack; empty: there is only one
  StackKind kind = StackKind::single;
  Variables first, last;
};

// Everything that is said about one scheme; what cannot be said has its reason beside it.
struct Explanation {
  std::optional<Budget> budget;
  std::optional<UnitCost> cost;
  std::string not_built;
  std::optional<Exponents> exponents;
  std::string judgement;  // one sentence, at the asked width
  std::string not_predicted;
  std::vector<StackNumbers> stacks;  // the only one, or encoder and decoder
  ModelConfig theory_model;          // that the exponents are of
  std::string theory_sizes;          // as those of the cost
};

// Why `norma train` refuses models of this family with this scheme; nothing where it trains them. Asked by planning a
// training step of a shallow one.
std::optional<std::string> refusal(const ExplainOptions& options);

// Throws Error for a scheme that computes what it does not use.
Explanation explain(const ExplainOptions& options);

}  // namespace norma
