// The parts of one layer: numbers become labels, only wires become lines.
#include "schemes/diagram_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <variant>

#include "norma/core/error.h"
#include "norma/schemes/functions.h"
#include "norma/schemes/trace.h"
#include "norma/schemes/walk.h"
#include "schemes/diagram_sections.h"

namespace norma {
namespace {

using Kind = DiagramPart::Kind;
using Tone = DiagramPart::Tone;

// A wire on its way: a sum that is still growing. One junction stands for all its wires, one pill for its numbers.
struct DrawnSum {
  struct Number {
    bool minus;
    std::string text;
  };
  std::vector<DiagramPart::Operand> operands = {};
  std::vector<Number> numbers = {};
  const Expression* whole = nullptr;  // the sum as it is written
};

// The algebra of drawings (walk.h): a number, of which labels show how it is written, or a wire.
class DrawingAlgebra {
 public:
  using Value = std::variant<std::monostate, DrawnSum>;

  DrawingAlgebra(const Scheme& scheme, const DiagramOptions& options, std::int64_t layer)
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
    for (const DiagramSection& section : sections_of(scheme_, options_)) draw(section);
    if (const Formula* final = scheme_.formula("final")) draw({.formula = final, .title = "after the last layer"});
    const bool closed = scheme_.formula("final") != nullptr;
    finish("x");
    for (const NamedExpression& stream : scheme_.streams) {
      if (stream.name == "x") continue;
      if (!closed || !read_by_others(streams_.at(stream.name))) finish(stream.name);
    }
    drop_unread();
    return std::move(result_);
  }

  static Value number(const Expression& /*e*/) { return {}; }
  static Value text(const Expression& /*e*/) { return {}; }
  Value name(const Expression& e) const {
    const auto found = wires_.find(e.name);
    return found == wires_.end() ? Value() : wire(found->second);
  }

  Value unary(const Expression& e, Value a) { return is_wire(a) ? wire(pill("× -1", e, close(a))) : Value(); }

  Value binary(const Expression& e, Value a, Value b) {
    if (!is_wire(a) && !is_wire(b)) return {};
    if (e.name == "+" || e.name == "-") return sum(e, a, b);
    if (e.name == "*") return wire(product(e, a, b));
    const Expression &left = *e.children[0], &right = *e.children[1];
    if (e.name == "/" && !is_wire(b)) return wire(pill("÷ " + factor_text(right), right, close(a)));
    const std::string label = e.name != "/" ? print_expression(e) : is_wire(a) ? "quotient" : factor_text(left) + " ÷";
    std::vector<Value> operands = {std::move(a), std::move(b)};
    return wire(box(e, label, operands));
  }

  // Sums grow through sums; whatever else reads one reads its junction.
  void operand(const Expression& e, Value& value) {
    const bool in_sum = e.kind == Expression::Kind::binary && (e.name == "+" || e.name == "-");
    if (!in_sum && is_wire(value)) close(value);
  }

  static std::optional<Value> answered(const Expression& /*e*/, const Value& /*a*/) { return std::nullopt; }
  static void expects(const Expression& /*e*/) {}

  Value call(const Expression& e, std::vector<Value> arguments) {
    for (const NamedArgument& argument : e.named) {
      Value value = walk(*argument.value, *this);
      operand(e, value);
      arguments.push_back(std::move(value));
    }
    if (is_branch(e.name)) return wire(branch(e, arguments));
    if (is_norm_name(e.name)) {
      const int part = box(e, e.name, arguments);
      result_.parts[static_cast<std::size_t>(part)].tone = Tone::norm;
      return wire(part);
    }
    if (std::none_of(arguments.begin(), arguments.end(), is_wire)) return {};
    const Function* function = find_function(e.name);
    const Drawing drawing = function != nullptr && function->drawing ? function->drawing.value : Drawing{};
    const std::string_view name = drawing.label.empty() ? std::string_view(e.name) : drawing.label;
    if (drawing.kind == Drawing::Kind::pill && arguments.size() == 1)
      return wire(add({.kind = Kind::pill, .label = std::string(name), .operands = {{close(arguments[0])}}}));
    return wire(box(e, call_label(e, name, arguments), arguments));
  }

  // Conditions are numbers, whatever else stands in a formula.
  std::optional<bool> decides(const Expression& e, const Value& /*condition*/) const {
    return evaluate(*e.children[0], numbers_, section_->formula->text) != 0;
  }
  static Value either(const Expression& /*e*/, const Value&, const Value&, const Value&) { return {}; }

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

  void draw(const DiagramSection& section) {
    result_.sections.push_back(section.title);
    section_ = &section;
    const bool closing = section.title == "after the last layer";
    const std::int64_t last = std::ssize(options_.branches) - 1;
    numbers_ = numbers_at_start(
        scheme_, closing ? place_of(options_, options_.layers, last) : place_of(options_, layer_, section.offset));
    wires_ = streams_;
    for (const Statement& statement : section.formula->statements) {
      const std::string target = statement.target.empty() ? "x" : statement.target;
      Value value = walk(*statement.value, *this);
      if (!is_wire(value)) continue;  // a number with a name: labels show it
      const int part = close(value);
      wires_[target] = part;
      DiagramPart& made = result_.parts[static_cast<std::size_t>(part)];
      if (!streams_.contains(target) && made.name.empty() && made.kind != Kind::input) made.name = target;
    }
    for (auto& [stream, part] : streams_) part = wires_.at(stream);
  }

  static bool is_wire(const Value& value) { return std::holds_alternative<DrawnSum>(value); }

  bool is_branch(const std::string& name) const {
    if (name == "f") return !section_->branch.empty();
    return section_->branch.empty() && branch_called(name) != nullptr;
  }

  int pill(const std::string& label, const Expression& factor, int operand) {
    const Tone tone = mentions_learned(scheme_, factor) ? Tone::learned : Tone::scale;
    return add({.kind = Kind::pill, .tone = tone, .label = label, .operands = {{operand}}});
  }

  static Value wire(int part) { return DrawnSum{.operands = {{part}}}; }

  // The part that makes a wire: a sum gets its junction.
  int close(Value& value) {
    DrawnSum& sum = std::get<DrawnSum>(value);
    int part = sum.operands[0].part;
    if (sum.operands.size() > 1 || sum.operands[0].minus)
      part = add({.kind = Kind::add, .label = "+", .operands = std::move(sum.operands)});
    std::string numbers;
    for (const DrawnSum::Number& number : sum.numbers)
      numbers += fmt::format("{}{} {}", numbers.empty() ? "" : " ", number.minus ? "-" : "+", number.text);
    if (!numbers.empty()) part = pill(numbers, *sum.whole, part);
    value = wire(part);
    return part;
  }

  // Something with wires among its arguments and no drawing of its own.
  int box(const Expression& e, std::string label, std::vector<Value>& arguments) {
    DiagramPart part{.kind = Kind::box, .label = std::move(label)};
    for (Value& argument : arguments) {
      if (is_wire(argument)) part.operands.push_back({close(argument)});
    }
    if (part.operands.empty())
      throw FormulaError(section_->formula->text, e.span, fmt::format("{} reads no wire such as x", e.name));
    return add(std::move(part));
  }

  int branch(const Expression& e, std::vector<Value>& arguments) {
    const std::string name = e.name == "f" ? section_->branch : e.name;
    const int part = box(e, branch_title(name), arguments);
    DiagramPart& made = result_.parts[static_cast<std::size_t>(part)];
    made.tone = Tone::branch;
    made.detail = branch_detail(scheme_, name);
    return part;
  }

  // The function's name, and numbers among its arguments; `arguments` hold positional ones first.
  static std::string call_label(const Expression& e, std::string_view name, const std::vector<Value>& arguments) {
    std::vector<std::string> numbers;
    for (std::size_t i = 0; i < e.children.size(); ++i) {
      if (!is_wire(arguments[i])) numbers.push_back(print_expression(*e.children[i]));
    }
    for (std::size_t i = 0; i < e.named.size(); ++i) {
      const NamedArgument& argument = e.named[i];
      const bool drawn = is_wire(arguments[e.children.size() + i]);
      numbers.push_back(argument.name + (drawn ? "" : " = " + print_expression(*argument.value)));
    }
    return numbers.empty() ? std::string(name) : fmt::format("{}({})", name, fmt::join(numbers, ", "));
  }

  Value sum(const Expression& e, const Value& a, const Value& b) {
    DrawnSum both{.whole = &e};
    const auto join = [&](const Value& value, const Expression& written, bool minus) {
      const DrawnSum* part = std::get_if<DrawnSum>(&value);
      if (part == nullptr) return both.numbers.push_back({minus, factor_text(written)});
      for (const DiagramPart::Operand& one : part->operands) both.operands.push_back({one.part, one.minus != minus});
      for (const DrawnSum::Number& one : part->numbers) both.numbers.push_back({one.minus != minus, one.text});
    };
    join(a, *e.children[0], false);
    join(b, *e.children[1], e.name == "-");
    return both;
  }

  int product(const Expression& e, Value& a, Value& b) {
    const Expression &left = *e.children[0], &right = *e.children[1];
    if (!is_wire(a)) return pill("× " + factor_text(left), left, close(b));
    if (!is_wire(b)) return pill("× " + factor_text(right), right, close(a));
    return add({.kind = Kind::product, .label = "×", .operands = {{close(a)}, {close(b)}}});
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
  DiagramParts parts = DrawingAlgebra(scheme, options, layer).run();
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
