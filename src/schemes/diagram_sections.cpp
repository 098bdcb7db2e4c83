#include "schemes/diagram_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "norma/core/error.h"
#include "norma/schemes/walk.h"

namespace norma {
namespace {

// The algebra of wirings (walk.h): nothing has a value, and the outcomes of conditions are noted as they are met.
class OutcomeAlgebra {
 public:
  struct Value {};

  OutcomeAlgebra(const Variables& numbers, const std::string& text, std::string& found)
      : numbers_(numbers), text_(text), found_(found) {}

  static Value number(const Expression& /*e*/) { return {}; }
  static Value text(const Expression& /*e*/) { return {}; }
  static Value name(const Expression& /*e*/) { return {}; }
  static Value unary(const Expression& /*e*/, Value /*a*/) { return {}; }
  static Value binary(const Expression& /*e*/, Value /*a*/, Value /*b*/) { return {}; }
  static std::optional<Value> answered(const Expression& /*e*/, Value /*a*/) { return std::nullopt; }
  static void expects(const Expression& /*e*/) {}
  Value call(const Expression& e, const std::vector<Value>& /*arguments*/) {
    for (const NamedArgument& argument : e.named) walk(*argument.value, *this);
    return {};
  }
  std::optional<bool> decides(const Expression& e, Value /*condition*/) {
    const bool yes = evaluate(*e.children[0], numbers_, text_) != 0;
    found_ += yes ? 'y' : 'n';
    return yes;
  }
  static Value either(const Expression& /*e*/, Value /*condition*/, Value /*yes*/, Value /*no*/) { return {}; }

 private:
  const Variables& numbers_;
  const std::string& text_;
  std::string& found_;
};

bool reads_memory(const DiagramOptions& options) {
  return std::ranges::any_of(options.branches,
                             [](const BranchKind* kind) { return kind->reads == BranchKind::Reads::memory; });
}

}  // namespace

std::vector<DiagramSection> sections_of(const Scheme& scheme, const DiagramOptions& options) {
  if (const Formula* layer = scheme.formula("layer")) {
    const Formula* with_cross = scheme.formula("cross_layer");
    return {{.formula = reads_memory(options) && with_cross != nullptr ? with_cross : layer, .title = "layer"}};
  }
  std::vector<DiagramSection> sections;
  for (const BranchKind* kind : options.branches) {
    const Formula* own = scheme.formula(kind->key);
    const Formula* formula = own != nullptr ? own : scheme.formula("sublayer");
    if (formula == nullptr) fail("scheme '{}' has no formula for {}", scheme.name, kind->key);
    sections.push_back({formula, kind->title + " sublayer", kind->key, static_cast<std::int64_t>(sections.size())});
  }
  return sections;
}

Place place_of(const DiagramOptions& options, std::int64_t layer, std::int64_t offset) {
  const bool cross = reads_memory(options);
  Place place{.stack = cross ? StackKind::decoder : StackKind::single,
              .layers = options.layers,
              .other_layers = cross ? options.layers : 0,
              .width = options.width,
              .heads = options.heads,
              .layer = layer,
              .sublayers = std::ssize(options.branches) * options.layers};
  place.sublayer = std::ssize(options.branches) * (layer - 1) + 1 + offset;
  return place;
}

std::vector<Wiring> wirings(const Scheme& scheme, const DiagramOptions& options) {
  if (options.layers < 1) fail("a stack needs at least one layer, but {} were asked for", options.layers);
  const std::vector<DiagramSection> sections = sections_of(scheme, options);
  const bool conditional = std::any_of(sections.begin(), sections.end(), [](const DiagramSection& section) {
    return section.formula->text.find("if") != std::string::npos;
  });
  if (!conditional) return {{.layers = {{1, options.layers}}, .count = options.layers}};
  std::map<std::string, Wiring> found;
  for (std::int64_t layer = 1; layer <= options.layers; ++layer) {
    std::string outcome;
    for (const DiagramSection& section : sections) {
      const Variables numbers = numbers_at_start(scheme, place_of(options, layer, section.offset));
      OutcomeAlgebra outcomes(numbers, section.formula->text, outcome);
      for (const Statement& statement : section.formula->statements) walk(*statement.value, outcomes);
      outcome += ';';
    }
    Wiring& wiring = found[outcome];
    ++wiring.count;
    if (!wiring.layers.empty() && wiring.layers.back().second == layer - 1) {
      wiring.layers.back().second = layer;
    } else {
      wiring.layers.emplace_back(layer, layer);
    }
  }
  std::vector<Wiring> result;
  for (auto& [outcome, wiring] : found) result.push_back(std::move(wiring));
  std::stable_sort(result.begin(), result.end(), [](const Wiring& a, const Wiring& b) { return a.count > b.count; });
  return result;
}

std::string print_layers(const Wiring& wiring) {
  constexpr std::size_t kMost = 4;  // ranges that are spelled out
  std::vector<std::string> ranges;
  for (const auto& [first, last] : wiring.layers) {
    if (ranges.size() == kMost) {
      ranges.push_back("...");
      break;
    }
    ranges.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
  }
  return fmt::format("{} {}", wiring.count == 1 ? "layer" : "layers", fmt::join(ranges, ", "));
}

}  // namespace norma
