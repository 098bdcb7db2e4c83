#include "schemes/formula_scheme.h"

#include <algorithm>

#include "norma/schemes/branch_kinds.h"
#include "norma/schemes/walk.h"

namespace norma {
namespace {

// The first call of such a function, or null.
template <typename Wanted>
const Expression* call_of(const Formula& formula, Wanted wanted) {
  const Expression* found = nullptr;
  visit(formula, [&](const Expression& e) {
    if (found == nullptr && e.kind == Expression::Kind::call && wanted(e.name)) found = &e;
  });
  return found;
}

// Which formula of a scheme this is, by the branches that it calls.
const char* key_of(const Formula& formula) {
  const Expression* whole = call_of(formula, branch_called);
  const Expression* sublayer = call_of(formula, [](std::string_view name) { return name == "f"; });
  if (whole != nullptr && sublayer != nullptr) {
    throw FormulaError(formula.text, sublayer->span,
                       fmt::format("a formula for every sublayer calls f, one for a whole layer attn and ffn; this one "
                                   "calls {} as well",
                                   whole->name));
  }
  const auto reads_memory = [](std::string_view name) {
    const BranchKind* kind = branch_called(name);
    return kind != nullptr && kind->reads == BranchKind::Reads::memory;
  };
  if (const Expression* cross = call_of(formula, reads_memory)) {
    throw FormulaError(formula.text, cross->span,
                       fmt::format("the decoder of an encoder-decoder calls {}, and its encoder needs a formula "
                                   "without; give both in a file, as cross_layer and layer",
                                   cross->name));
  }
  return whole != nullptr ? "layer" : "sublayer";
}

// The formula itself, on one line of bounded length.
std::string title_of(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string title(text);
  std::replace_if(
      title.begin(), title.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  if (title.size() <= kLongest) return title;
  std::size_t end = kLongest - 3;
  while ((static_cast<unsigned char>(title[end]) & 0xc0) == 0x80) --end;  // not inside a character
  return title.substr(0, end) + "...";
}

}  // namespace

Scheme formula_scheme(std::string_view text) {
  Scheme scheme;
  scheme.name = "formula";
  scheme.title = title_of(text);
  Formula formula = parse_formula(text);
  scheme.formulas.emplace(key_of(formula), std::move(formula));
  return scheme;
}

}  // namespace norma
