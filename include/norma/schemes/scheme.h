// A scheme: how norms and residuals are wired in a stack, read from a small TOML file. See docs/language.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "norma/schemes/formula.h"

namespace norma {

struct NamedExpression {
  std::string name;
  ExpressionPtr value;
};

// A learned scalar, vector or matrix of a formula.
struct LearnedSpec {
  enum class Extent { one, width, listed };   // shape "1", "d", or a list of expressions
  enum class Per { sublayer, layer, stack };  // how many of it there are
  enum class From { itself, condition };      // a parameter, or a vector of the width that the condition makes

  std::string name;
  ExpressionPtr init;              // of each element (i, j: its row and column, from 1), or normal(deviation)
  ExpressionPtr stored = nullptr;  // what is stored instead of init; a formula sees it times init/stored
  Extent extent = Extent::one;
  std::vector<ExpressionPtr> shape = {};  // listed: one or two of them
  Per per = Per::sublayer;
  std::optional<bool> decay = {};   // nothing: a matrix decays as weights do, all else as vectors do
  ExpressionPtr lr = nullptr;       // multiplies the learning rate; null: 1
  ExpressionPtr profile = nullptr;  // what the next one starts at, measured before step 0 (Admin)
  From from = From::itself;         // condition: condition W + b of each sample, with b starting at init
};

// Constants and rules that may differ between the two stacks of an encoder-decoder.
struct Constants {
  std::vector<NamedExpression> common, encoder, decoder;
};

// How the weight that a layer uses is made of the tensor that is learned (models/weight_form.h).
enum class WeightForm { plain, standardised, weight_norm, spectral };

// What a scheme asks of weights everywhere.
struct WeightSpec {
  WeightForm form = WeightForm::plain;  // of branches, stems and projected skips
  bool biases = true;                   // of linear layers
  bool unit = false;  // every vector along the embedding dimension has unit length, at the start and after each step
};

// What a scheme asks of the output projection; null: nothing.
struct HeadSpec {
  ExpressionPtr scale = nullptr;        // multiplies logits
  ExpressionPtr gain = nullptr;         // a learned gain per class that starts here,
  ExpressionPtr gain_stored = nullptr;  // stored as this
};

// What a scheme asks of the token table; null: as the model is configured.
struct EmbeddingSpec {
  ExpressionPtr scale = nullptr;  // multiplies tokens before positions are added, instead of model.scale_embedding
};

struct Scheme {
  std::string name;  // of the file
  std::string title;
  std::string source;  // the paper, or empty
  // By key: sublayer, layer, cross_layer, final, and that of a branch (branch_kinds.h).
  std::map<std::string, Formula> formulas;
  std::vector<NamedExpression> streams;  // beside x, with their start
  Constants constants;
  std::vector<LearnedSpec> learned;
  // Rules by weight role: gain on Xavier, standard deviation instead of Xavier, factors on learning rate, eps, decay.
  std::map<std::string, std::vector<NamedExpression>> rules;  // "init.gain", "init.std", "lr", "eps", "decay"
  // Options of branches, by their key: branch_options["ffn"]["inner"] == "rmsnorm".
  std::map<std::string, std::map<std::string, std::string>> branch_options;
  WeightSpec weights = {};
  HeadSpec head = {};
  EmbeddingSpec embedding = {};
  std::string norm_gain;  // how norms store their gain: "w" or "1 + w"
  std::string text;       // the TOML it was read from; empty: it is nothing but a formula

  const Formula* formula(std::string_view key) const;
};

// Throws Error naming file, key and, for an unknown key, the nearest known one; formulas fail with a caret.
Scheme parse_scheme(std::string_view name, std::string_view toml_text);

// The first name that a formula gives a value which nothing reads: the key of the formula, its text with a caret under
// the name, and what to do. Such a formula can be drawn, but what only that value depends on cannot be trained.
std::optional<std::string> unread_name(const Scheme& scheme);

}  // namespace norma
