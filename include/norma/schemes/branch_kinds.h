// The table of branches: what formulas, options and rules of a scheme call them by, and what the theory must know of
// their weights. What builds one comes with the family that uses it (docs/families.md).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace norma {

struct BranchKind {
  enum class Reads { position, sequence, memory };  // by itself, with all others, or of another stack
  enum class Own { needed, optional };  // whether a scheme that gives formulas kind by kind must have one for it

  // Columns that start alike, and what a change of them counts as.
  struct Weight {
    enum class Part { last, first, scores };
    std::string name;           // within the scope: "qkv.weight"
    int block = 0, blocks = 1;  // of columns that are packed side by side
    Part part = Part::last;
  };

  std::string key;    // in a scheme's file: "attention"
  std::string scope;  // its weights live in, and what a formula for a whole layer calls it: "attn"
  std::string title;  // in drawings: "cross-attention"
  Reads reads = Reads::position;
  Own formula = Own::optional;
  std::vector<std::string> options = {};
  std::vector<std::string> roles = {};  // of its weights, in rules
  std::vector<Weight> weights = {};

  std::size_t index() const;  // in the table
  const std::string& last_weight() const;
};

std::span<const BranchKind> branch_kinds();
// By key; the table must have it.
const BranchKind& branch_kind(std::string_view key);
// What a name means inside a formula for a whole layer; null: no branch.
const BranchKind* branch_called(std::string_view name);

// The branches of a layer where nobody says otherwise: those that every scheme has a formula for, and with a memory to
// read those that read one.
enum class Memory { absent, present };
std::vector<const BranchKind*> usual_branches(Memory memory = Memory::absent);

// Throws Error where an option of some branch cannot have this value: an unknown norm or word, or no expression.
void check_branch_option(std::string_view option, const std::string& value);

}  // namespace norma
