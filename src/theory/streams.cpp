// The streams of a scheme, as they begin.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "norma/schemes/functions.h"
#include "norma/schemes/walk.h"
#include "theory/program.h"

namespace norma {
namespace {

bool is_name(const Expression& e, const std::string& name) {
  return e.kind == Expression::Kind::name && e.name == name;
}

bool grows(const Scheme& scheme, const std::string& stream) {
  bool found = false;
  for (const auto& [key, formula] : scheme.formulas) {
    visit(formula, [&](const Expression& e) {
      const Function* function = e.kind == Expression::Kind::call ? find_function(e.name) : nullptr;
      const bool appends = function != nullptr && function->moments && function->moments.value == MomentRule::append;
      found = found || (appends && !e.children.empty() && is_name(*e.children[0], stream));
    });
  }
  return found;
}

bool reads(const Scheme& scheme, const std::string& stream) {
  bool found = false;
  const auto look = [&](const Expression& e) { found = found || is_name(e, stream); };
  for (const auto& [key, formula] : scheme.formulas) visit(formula, look);
  for (const LearnedSpec& learned : scheme.learned) {
    if (learned.profile != nullptr) visit(*learned.profile, look);
  }
  return found;
}

}  // namespace

std::vector<TheoryStream> theory_streams(const TheorySurroundings& surroundings) {
  const Scheme& scheme = surroundings.scheme;
  const Variables first = {{"l", 1.0}, {"k", 1.0}};
  std::vector<TheoryStream> streams = {{.name = "x"}};
  for (const NamedExpression& given : scheme.streams) {
    const auto refused = [&] {
      return NotPredictedError(
          fmt::format("scheme '{}': stream '{}' does not begin as a multiple of x0", scheme.name, given.name));
    };
    const auto at = [&](const Expression& e, double x0) {
      TheorySurroundings with_input = surroundings;
      with_input.numbers["x0"] = x0;
      return value_of(fold(e, with_input, print_expression(e)), first);
    };
    TheoryStream stream{.name = given.name};
    const Expression& start = *given.value;
    stream.copies = start.kind == Expression::Kind::call && start.name == "copies" && start.children.size() == 2;
    try {
      const Expression& one = stream.copies ? *start.children[0] : start;
      stream.factor = at(one, 1);
      if (at(one, 2) != 2 * stream.factor) throw refused();
      if (stream.copies) stream.count = at(*start.children[1], 1);
    } catch (const FormulaError&) {  // functions of wires
      throw refused();
    }
    stream.grows = stream.copies && grows(scheme, given.name);
    if (!(stream.count >= 1 && stream.count <= kMostCopies && stream.count == std::floor(stream.count)) ||
        (stream.name == "x" && stream.copies))
      throw refused();
    stream.registers = stream.copies && !stream.grows ? static_cast<int>(stream.count) : 1;
    if (stream.name == "x") {  // x may be given a start as well
      streams[0].factor = stream.factor;
    } else {
      stream.first = streams.back().first + streams.back().registers;
      streams.push_back(std::move(stream));
    }
  }
  if (streams.back().first + streams.back().registers >= kMostRegisters)
    throw NotPredictedError(fmt::format("scheme '{}': the theory has no rule for so many streams", scheme.name));
  for (TheoryStream& stream : streams) stream.alone = !reads(scheme, stream.name);
  return streams;
}

}  // namespace norma
