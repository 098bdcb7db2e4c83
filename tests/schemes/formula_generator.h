// Formulas that nobody wrote: random ones of the language, typed (wires where wires belong, numbers where numbers do),
// the same ones for the same seed.
#pragma once

#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

namespace norma::test {

class FormulaGenerator {
 public:
  enum class For { sublayer, layer };  // whether branches are called f, or attn and ffn

  enum class Terms { any, linear };  // linear: what the theory has rules for, and one branch

  FormulaGenerator(unsigned seed, For kind, Terms terms = Terms::any) : random_(seed), kind_(kind), terms_(terms) {}

  std::string formula() {
    wires_ = {"x"};
    std::string text;
    for (int statements = below(4), i = 0; i < statements; ++i) {
      text += fmt::format("a{} = {}; ", i, wire(3));
      wires_.push_back(fmt::format("a{}", i));
    }
    // What the drawing has to hold together: a sum that reads the stream, and others of them again.
    text += one_of(wires_);
    for (int terms = 1 + below(4), i = 0; i < terms; ++i) text += (below(4) == 0 ? " - " : " + ") + term(3);
    return text + " + " + branch(2);
  }

 private:
  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }

  template <typename T>
  const T& one_of(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<int>(from.size())))];
  }

  std::string number(int depth) {
    if (depth == 0 || below(2) == 0) return below(2) == 0 ? one_of(numbers_) : fmt::format("{}", 0.25 * (1 + below(9)));
    switch (below(5)) {
      case 0: return fmt::format("sqrt({})", number(depth - 1));
      case 1: return fmt::format("({} + {})", number(depth - 1), number(depth - 1));
      case 2: return fmt::format("max({}, 1)", number(depth - 1));
      case 3: return fmt::format("1/(1 + {})", number(depth - 1));
      default: return fmt::format("(if l <= {} then {} else 2)", below(4), number(depth - 1));
    }
  }

  std::string branch(int depth) {
    if (kind_ == For::sublayer) return fmt::format("f({})", wire(depth));
    const char* options = below(3) == 0 ? ", q = \"rmsnorm\"" : "";
    return below(2) == 0 ? fmt::format("attn({}{})", wire(depth), options) : fmt::format("ffn({})", wire(depth));
  }

  // Binds tighter than a sum.
  std::string term(int depth) {
    if (depth == 0 || below(3) == 0) return one_of(wires_);
    switch (below(terms_ == Terms::linear ? 6 : 9)) {
      case 0: return fmt::format("{}*{}", number(1), term(depth - 1));
      case 1: return fmt::format("{}/{}", term(depth - 1), number(0));
      case 2: return fmt::format("{}({})", one_of(norms_), wire(depth - 1));
      case 3: return fmt::format("(if l <= {} then {} else {})", below(3), wire(depth - 1), wire(depth - 1));
      case 4: return fmt::format("({})", wire(depth - 1));
      case 5: return fmt::format("{}({})", one_of(functions_), wire(depth - 1));
      case 6: return fmt::format("{}*{}", term(depth - 1), term(depth - 1));
      case 7: return branch(depth - 1);
      default: return fmt::format("{}*{}({})", term(depth - 1), below(2) == 0 ? "mean" : "var", wire(depth - 1));
    }
  }

  std::string wire(int depth) {
    if (depth == 0) return one_of(wires_);
    std::string text = below(8) == 0 ? "-" + term(depth - 1) : term(depth);
    for (int more = below(3), i = 0; i < more; ++i)
      text += (below(3) == 0 ? " - " : " + ") + (shifts() ? number(0) : term(depth - 1));
    return text;
  }

  bool shifts() { return terms_ == Terms::any && below(8) == 0; }

  std::mt19937 random_;
  const For kind_;
  const Terms terms_;
  std::vector<std::string> wires_;
  const std::vector<std::string> numbers_ = {"l", "k", "n", "N", "d"};
  const std::vector<std::string> norms_ = {"norm", "layernorm", "rmsnorm", "dyt"};
  const std::vector<std::string> functions_ =
      terms_ == Terms::linear
          ? std::vector<std::string>{"tanh", "sg", "unit", "rms"}
          : std::vector<std::string>{"tanh", "sigmoid", "silu", "sg", "unit", "rms", "softmax", "abs"};
};

}  // namespace norma::test
