// One scheme explained at a given depth and width: what there is to say, and how it is said.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "norma/lab/inspect.h"
#include "norma/models/budget.h"
#include "norma/schemes/diagram.h"
#include "norma/schemes/library.h"
#include "norma/theory/predict.h"

namespace norma::cli {

struct SchemesOptions {
  std::string name;
  Family family = "decoder";
  std::int64_t layers = 12;
  std::int64_t width = 512;
  std::int64_t heads = 8;
  std::string norm = "layer";
  std::int64_t layer = 0;
  std::string svg;
  // Of the model that the theory is asked about: what norma inspect takes unless told otherwise.
  std::vector<std::int64_t> depths = kInitialDepths;
  std::int64_t theory_width = initial_model().width;
  std::int64_t theory_time = initial_model().time;
  SchemeLibrary library = SchemeLibrary::of_environment();
  bool json = false;
};

std::string_view name_of(LearnedSpec::Per per);  // sublayer, layer, stack

// The formula that says most: the whole layer, every sublayer, or the attention sublayer.
std::string headline(const Scheme& scheme);
// Name, title, source and headline.
nlohmann::json summary(const Scheme& scheme);
// Where a scheme comes from, if it is not norma's own.
std::string note_on(const SchemeEntry& entry);

// What one token costs in a forward pass, of a whole model with the shape's default vocabulary.
struct TokenCost {
  double flops = 0;  // of training: forward and backward
  double bytes = 0;  // least traffic of the forward pass, activations and weights
  std::int64_t time = 0;
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
  std::optional<TokenCost> cost;
  std::string not_built;
  std::optional<Exponents> exponents;
  std::string judgement;  // one sentence, at the asked width
  std::string not_predicted;
  std::vector<StackNumbers> stacks;  // the only one, or encoder and decoder
};

Explanation explanation_of(const SchemesOptions& options);

void print_json(const SchemesOptions& options, const SchemeEntry& entry, const Explanation& said);
void print_text(const SchemesOptions& options, const SchemeEntry& entry, const Explanation& said,
                const DiagramOptions& drawing);

}  // namespace norma::cli
