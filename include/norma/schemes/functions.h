// The functions that formulas may call: a row each, and in it a column for each algebra. Branches and norms are no
// functions: they have weights, and models make them.
#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "norma/graph/wire.h"

namespace norma {

using Traced = std::variant<double, Wire>;

// What a column holds, or why it holds nothing: a part of a sentence, "it ...", for whoever asks for it.
template <typename T>
struct Column {
  template <typename Given>
    requires std::convertible_to<Given, T>
  constexpr Column(Given given) : value(given) {}
  constexpr Column(std::string_view reason) : why_not(reason) {}
  constexpr explicit operator bool() const { return why_not.empty(); }

  T value = {};
  std::string_view why_not = {};
};

using NumberFunction = double (*)(std::span<const double> arguments);
using WireFunction = Wire (*)(std::span<const Traced> arguments);

// What the theory does (docs/theory.md), beyond applying `number` to numbers. To streams:
enum class MomentRule {
  squash,     // Gaussian moments of tanh
  rectify,    // Gaussian moments of relu
  stop,       // passes forward, stops backward
  normalise,  // to rms 1
  shorten,    // to length 1
  flatten,    // copies in a row, which only weights are made of
  repeat,     // copies of one
  append,     // one more copy
  total,      // the sum of copies
  weigh,      // copies by a row of weights
  mix,        // copies by a matrix of weights
  spread,     // copies from one, by a row of weights
  variance,   // where a profile asks for it
  // To weights of copies:
  elementwise,  // `number` of each
  softmax,
  sinkhorn,
  transpose,
  square,  // a row as a matrix
  read,    // weights read off a stream by a learned vector or matrix
};

// How a call on wires is drawn; numbers among its arguments are part of its label.
struct Drawing {
  enum class Kind { box, pill };
  Kind kind = Kind::box;
  std::string_view label = {};  // empty: the function's name
};

// What a function does to shares of skip and branch.
enum class ShareRule { same };

struct Function {
  std::string_view name;
  std::string_view arguments;  // one letter each: w a wire, n a number; `number` takes numbers for all of them
  Column<NumberFunction> number;
  Column<WireFunction> wire;
  Column<MomentRule> moments;
  Column<Drawing> drawing;
  Column<ShareRule> share;
};

std::span<const Function> functions();
const Function* find_function(std::string_view name);  // null: there is none

// Names of those that know numbers, or wires.
std::vector<std::string> number_functions();
std::vector<std::string> wire_functions();

}  // namespace norma
