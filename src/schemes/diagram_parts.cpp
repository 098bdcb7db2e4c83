// Walks the syntax tree of one layer and names its parts. Numbers become labels; only wires become lines.
#include "schemes/diagram_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "norma/core/error.h"
#include "norma/schemes/trace.h"
#include "schemes/diagram_sections.h"

namespace norma {
namespace {

using Kind = DiagramPart::Kind;
using Tone = DiagramPart::Tone;

std::string branch_title(const std::string& name) {
  if (name == "attention" || name == "attn") return "attention";
  if (name == "cross") return "cross-attention";
  return name == "ffn" ? "feed-forward" : name;
}

// What the scheme asks of a branch beyond the plain one.
std::string branch_detail(const Scheme& scheme, const std::string& name) {
  const auto found = scheme.branch_options.find(name == "attn" ? "attention" : name);
  if (found == scheme.branch_options.end()) return "";
  const std::map<std::string, std::string>& options = found->second;
  std::vector<std::string> said;
  std::string projections;
  for (const char* projection : {"q", "k", "v"}) {
    if (options.contains(projection)) projections += (projections.empty() ? "" : ", ") + std::string(projection);
  }
  if (!projections.empty()) said.push_back("norm on " + projections);
  for (const auto& [option, value] : options) {
    if (option == "inner") said.push_back("inner " + value);
    if (option == "head_gain") said.push_back("gain per head");
    if (option == "scores") said.push_back("carries scores");
  }
  return fmt::format("{}", fmt::join(said, "; "));
}

class Walker {
 public:
  Walker(const Scheme& scheme, const DiagramOptions& options, std::int64_t layer)
      : scheme_(scheme), options_(options), layer_(layer) {}

  DiagramParts run() {
    start("x", "x");
    for (const NamedExpression& stream : scheme_.streams) {
      const std::string label = fmt::format("{} = {}", stream.name, print_expression(*stream.value));
      if (stream.name == "x") {
        result_.parts[0].label = label;  // x may be given a start as well
      } else {
        start(stream.name, label);
      }
    }
    for (const DiagramSection& section : sections_of(scheme_, options_)) walk(section);
    if (const Formula* final = scheme_.formula("final")) walk({.formula = final, .title = "after the last layer"});
    const bool closed = scheme_.formula("final") != nullptr;
    finish("x");
    for (const NamedExpression& stream : scheme_.streams) {
      if (stream.name == "x") continue;
      if (!closed || !read_by_others(streams_.at(stream.name))) finish(stream.name);
    }
    drop_unread();
    return std::move(result_);
  }

 private:
  void start(const std::string& stream, const std::string& label) {
    streams_[stream] = add({.kind = Kind::input, .label = label});
  }

  void finish(const std::string& stream) {
    result_.parts.push_back({.kind = Kind::output,
                             .label = stream,
                             .operands = {{streams_.at(stream)}},
                             .section = static_cast<int>(result_.sections.size()) - 1});
  }

  bool read_by_others(int part) const {
    return std::any_of(result_.parts.begin(), result_.parts.end(), [&](const DiagramPart& reader) {
      return std::any_of(reader.operands.begin(), reader.operands.end(),
                         [&](const DiagramPart::Operand& operand) { return operand.part == part; });
    });
  }

  // A name that is assigned and never used leaves nothing to draw.
  void drop_unread() {
    std::vector<int> renumbered(result_.parts.size(), -1);
    for (std::size_t i = result_.parts.size(); i-- > 0;) {
      const DiagramPart& part = result_.parts[i];
      if (part.kind == Kind::output || part.kind == Kind::input || read_by_others(static_cast<int>(i))) continue;
      result_.parts[i].operands.clear();
      renumbered[i] = -2;
    }
    std::vector<DiagramPart> kept;
    for (std::size_t i = 0; i < result_.parts.size(); ++i) {
      if (renumbered[i] == -2) continue;
      renumbered[i] = static_cast<int>(kept.size());
      kept.push_back(std::move(result_.parts[i]));
      for (DiagramPart::Operand& operand : kept.back().operands)
        operand.part = renumbered[static_cast<std::size_t>(operand.part)];
    }
    result_.parts = std::move(kept);
  }

  int add(DiagramPart part) {
    part.section = std::max(0, static_cast<int>(result_.sections.size()) - 1);
    result_.parts.push_back(std::move(part));
    return static_cast<int>(result_.parts.size()) - 1;
  }

  void walk(const DiagramSection& section) {
    result_.sections.push_back(section.title);
    section_ = &section;
    const bool closing = section.title == "after the last layer";
    const std::int64_t last = place_of(options_, 1, 0).sublayers_per_layer() - 1;
    numbers_ = numbers_at_start(
        scheme_, closing ? place_of(options_, options_.layers, last) : place_of(options_, layer_, section.offset));
    wires_ = streams_;
    for (const Statement& statement : section.formula->statements) {
      const std::string target = statement.target.empty() ? "x" : statement.target;
      const std::optional<int> part = value(*statement.value);
      if (!part) continue;  // a number with a name: labels show it
      wires_[target] = *part;
      DiagramPart& made = result_.parts[static_cast<std::size_t>(*part)];
      if (!streams_.contains(target) && made.name.empty() && made.kind != Kind::input) made.name = target;
    }
    for (auto& [stream, part] : streams_) part = wires_.at(stream);
  }

  bool is_wire(const Expression& e) const {
    switch (e.kind) {
      case Expression::Kind::name: return wires_.contains(e.name);
      case Expression::Kind::call:
        if (is_branch(e.name) || is_norm_name(e.name)) return true;
        break;
      case Expression::Kind::conditional: return is_wire(chosen(e));
      default: break;
    }
    return std::any_of(e.children.begin(), e.children.end(), [&](const ExpressionPtr& c) { return is_wire(*c); }) ||
           std::any_of(e.named.begin(), e.named.end(), [&](const NamedArgument& a) { return is_wire(*a.value); });
  }

  bool is_branch(const std::string& name) const {
    if (name == "f") return !section_->branch.empty();
    return section_->branch.empty() && (name == "attn" || name == "cross" || name == "ffn");
  }

  const Expression& chosen(const Expression& e) const {
    return evaluate(*e.children[0], numbers_, section_->formula->text) != 0 ? *e.children[1] : *e.children[2];
  }

  // The part that makes a wire; nothing for a number.
  std::optional<int> value(const Expression& e) {
    if (!is_wire(e)) return std::nullopt;
    switch (e.kind) {
      case Expression::Kind::name: return wires_.at(e.name);
      case Expression::Kind::conditional: return value(chosen(e));
      case Expression::Kind::call: return call(e);
      case Expression::Kind::unary: return pill("× -1", e, *value(*e.children[0]));
      case Expression::Kind::binary:
        if (e.name == "+" || e.name == "-") return sum(e);
        if (e.name == "*") return product(e);
        if (e.name == "/") return quotient(e);
        break;
      default: break;
    }
    return box(e, print_expression(e));
  }

  int pill(const std::string& label, const Expression& factor, int operand) {
    const std::vector<std::string> names = names_in(factor);
    const bool learned = std::any_of(scheme_.learned.begin(), scheme_.learned.end(), [&](const LearnedSpec& spec) {
      return std::find(names.begin(), names.end(), spec.name) != names.end();
    });
    return add(
        {.kind = Kind::pill, .tone = learned ? Tone::learned : Tone::scale, .label = label, .operands = {{operand}}});
  }

  // Something with wires among its arguments and no drawing of its own.
  int box(const Expression& e, std::string label) {
    DiagramPart part{.kind = Kind::box, .label = std::move(label)};
    for (const ExpressionPtr& child : e.children) {
      if (const std::optional<int> operand = value(*child)) part.operands.push_back({*operand});
    }
    for (const NamedArgument& argument : e.named) {
      if (const std::optional<int> operand = value(*argument.value)) part.operands.push_back({*operand});
    }
    if (part.operands.empty())
      throw FormulaError(section_->formula->text, e.span, fmt::format("{} reads no wire such as x", e.name));
    return add(std::move(part));
  }

  int call(const Expression& e) {
    if (is_branch(e.name)) {
      const std::string branch = e.name == "f" ? section_->branch : e.name;
      const int part = box(e, branch_title(branch));
      DiagramPart& made = result_.parts[static_cast<std::size_t>(part)];
      made.tone = Tone::branch;
      made.detail = branch_detail(scheme_, branch);
      return part;
    }
    if (e.name == "sg" && e.children.size() == 1)
      return add({.kind = Kind::pill, .label = "stop gradient", .operands = {{*value(*e.children[0])}}});
    std::string label = e.name;
    if (!is_norm_name(e.name)) {
      std::vector<std::string> numbers;
      for (const ExpressionPtr& child : e.children) {
        if (!is_wire(*child)) numbers.push_back(print_expression(*child));
      }
      for (const NamedArgument& argument : e.named)
        numbers.push_back(argument.name + (is_wire(*argument.value) ? "" : " = " + print_expression(*argument.value)));
      if (!numbers.empty()) label += fmt::format("({})", fmt::join(numbers, ", "));
    }
    const int part = box(e, label);
    if (is_norm_name(e.name)) result_.parts[static_cast<std::size_t>(part)].tone = Tone::norm;
    return part;
  }

  // a + b - (c + d): one junction for all wires; numbers are added by a pill.
  int sum(const Expression& e) {
    DiagramPart junction{.kind = Kind::add, .label = "+"};
    std::string numbers;
    collect(e, false, junction, numbers);
    int part = 0;
    if (junction.operands.size() == 1 && !junction.operands[0].minus) {
      part = junction.operands[0].part;
    } else {
      part = add(std::move(junction));
    }
    return numbers.empty() ? part : pill(numbers, e, part);
  }

  void collect(const Expression& e, bool minus, DiagramPart& junction, std::string& numbers) {
    if (e.kind == Expression::Kind::conditional) return collect(chosen(e), minus, junction, numbers);
    if (e.kind == Expression::Kind::binary && (e.name == "+" || e.name == "-") && is_wire(e)) {
      collect(*e.children[0], minus, junction, numbers);
      collect(*e.children[1], minus != (e.name == "-"), junction, numbers);
      return;
    }
    if (const std::optional<int> operand = value(e)) {
      junction.operands.push_back({*operand, minus});
    } else {
      numbers += fmt::format("{}{} {}", numbers.empty() ? "" : " ", minus ? "-" : "+", factor_text(e));
    }
  }

  static std::string factor_text(const Expression& e) {
    const bool loose = e.kind == Expression::Kind::binary || e.kind == Expression::Kind::conditional;
    return loose ? "(" + print_expression(e) + ")" : print_expression(e);
  }

  int product(const Expression& e) {
    const Expression &left = *e.children[0], &right = *e.children[1];
    if (!is_wire(left)) return pill("× " + factor_text(left), left, *value(right));
    if (!is_wire(right)) return pill("× " + factor_text(right), right, *value(left));
    const int a = *value(left), b = *value(right);
    return add({.kind = Kind::product, .label = "×", .operands = {{a}, {b}}});
  }

  int quotient(const Expression& e) {
    const Expression &left = *e.children[0], &right = *e.children[1];
    if (!is_wire(right)) return pill("÷ " + factor_text(right), right, *value(left));
    return box(e, is_wire(left) ? "quotient" : factor_text(left) + " ÷");
  }

  const Scheme& scheme_;
  const DiagramOptions& options_;
  std::int64_t layer_;
  const DiagramSection* section_ = nullptr;
  Variables numbers_;
  std::map<std::string, int> wires_;
  std::map<std::string, int> streams_;
  DiagramParts result_;
};

}  // namespace

DiagramParts diagram_parts(const Scheme& scheme, const DiagramOptions& options) {
  const std::vector<Wiring> all = wirings(scheme, options);
  if (options.layer < 0 || options.layer > options.layers)
    fail("there is no layer {} in a stack of {}", options.layer, options.layers);
  const auto holds = [](const Wiring& wiring, std::int64_t layer) {
    return std::any_of(wiring.layers.begin(), wiring.layers.end(),
                       [&](const auto& range) { return range.first <= layer && layer <= range.second; });
  };
  const Wiring& drawn = options.layer == 0 ? all.front() : *std::find_if(all.begin(), all.end(), [&](const Wiring& w) {
    return holds(w, options.layer);
  });
  const std::int64_t layer = options.layer == 0 ? drawn.layers.front().first : options.layer;
  DiagramParts parts = Walker(scheme, options, layer).run();
  parts.heading = scheme.title;
  parts.notes = diagram_legend(scheme, options, layer);
  if (all.size() > 1) {
    parts.notes.push_back(fmt::format("drawn: {} of {}", print_layers(drawn), options.layers));
    for (const Wiring& other : all) {
      if (&other != &drawn) parts.notes.push_back(fmt::format("wired differently: {}", print_layers(other)));
    }
  }
  return parts;
}

}  // namespace norma
