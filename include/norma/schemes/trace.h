// From formula to wires: the formula is the program.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "norma/core/error.h"
#include "norma/graph/wire.h"
#include "norma/norms/norm.h"
#include "norma/schemes/evaluate.h"
#include "norma/schemes/formula.h"

namespace norma {

// Options given inside a call, by name: `attn(x, q = "rmsnorm")`. Texts as they are, anything else as it prints.
using BranchOptions = std::map<std::string, std::string>;

// What a branch throws for an option that it does not take; tracing puts a caret under it where a call gave it.
class BranchOptionError : public Error {
 public:
  BranchOptionError(std::string option, const std::string& message) : Error(message), option_(std::move(option)) {}
  const std::string& option() const { return option_; }

 private:
  std::string option_;
};

// What the names of a formula stand for at one place of a stack.
struct Surroundings {
  // Known before the first step: l, k, n, N, M, d, heads and constants made of them.
  Variables numbers;
  // x, the other streams, learned values, schedules; assignments of the formula land here.
  std::map<std::string, Wire> wires;
  // Branches by name: f, attn, cross, ffn. Calling one twice uses the same weights.
  std::map<std::string, std::function<Wire(Wire, const BranchOptions&)>> branches;
  // A norm of the given kind ("norm" for the one the model is configured with) at the site "norm<k>", k counting the
  // norms of the formula as they are written.
  std::function<Wire(std::string_view kind, std::string_view site, Wire x)> norm;
  // What a sum makes of one of its sides where the other has this shape, another one: of a stream that a branch narrows
  // or widens. Null: nothing, they do not fit.
  std::function<Wire(Wire side, const Shape& other)> fit = nullptr;
};

// Traces the statements; a bare value at the end becomes x. Conditions must be numbers: they choose a wiring. Throws
// FormulaError with a caret for names, functions and combinations that mean nothing.
void trace(const Formula& formula, Surroundings& surroundings);

// unit(x) divides by the length of x, or by this where x is shorter.
constexpr double kShortestUnit = 1e-12;

// Names of norms that a formula may call: "norm", "<kind>norm" and "dyt".
bool is_norm_name(std::string_view name);

// The norm that such a name, or its kind alone ("rms"), means where `norm` means `configured`. Throws Error for any
// other name.
const NormInfo& norm_called(std::string_view name, NormKind configured);

}  // namespace norma
