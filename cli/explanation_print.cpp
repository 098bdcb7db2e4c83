#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/explanation.h"
#include "cli/text.h"
#include "norma/core/error.h"

namespace norma::cli {
namespace {

using Json = nlohmann::json;

std::string indented(const std::string& text) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) result += "  " + text.substr(begin, end - begin);
    result += '\n';
    begin = end + 1;
  }
  return result;
}

std::vector<NamedExpression> constants_for(const SchemesOptions& options, const Scheme& scheme) {
  return constants_of(scheme, options.family == Family::encoder_decoder ? StackKind::decoder : StackKind::single);
}

void print_constants(const SchemesOptions& options, const Scheme& scheme, const Explanation& said) {
  for (const NamedExpression& constant : constants_for(options, scheme)) {
    const std::string text = print_expression(*constant.value);
    const auto first = said.first.find(constant.name);
    if (first == said.first.end()) {
      fmt::print("  {:<14} {}  (a schedule over the step t)\n", constant.name, text);
    } else if (first->second == said.last.at(constant.name)) {
      const std::string value = fmt::format("{:.4g}", first->second);
      fmt::print("  {:<14} {}\n", constant.name, text == value ? text : text + " = " + value);
    } else {
      fmt::print("  {:<14} {} = {:.4g} at the first layer, {:.4g} at the last\n", constant.name, text, first->second,
                 said.last.at(constant.name));
    }
  }
  for (const LearnedSpec& learned : scheme.learned) {
    constexpr const char* kPer[] = {"sublayer", "layer", "stack"};
    constexpr const char* kExtent[] = {"number", "vector", "tensor"};
    fmt::print("  {:<14} learned {} per {}, starts at {}{}\n", learned.name, kExtent[static_cast<int>(learned.extent)],
               kPer[static_cast<int>(learned.per)], print_expression(*learned.init),
               learned.decay ? "" : ", no weight decay");
  }
}

// What each role's weights start with, and what its optimiser is told.
void print_rules(const Scheme& scheme, const Explanation& said) {
  const std::map<std::string, std::string> kinds = {{"init.gain", "Xavier gain times"},
                                                    {"init.std", "deviation"},
                                                    {"lr", "learning rate times"},
                                                    {"eps", "Adam's eps times"},
                                                    {"decay", "weight decay times"}};
  for (const auto& [rule, entries] : scheme.rules) {
    for (const NamedExpression& role : entries) {
      const std::string text = print_expression(*role.value);
      std::string value;
      try {
        value = fmt::format(" = {:.4g}", evaluate(*role.value, said.first, text));
      } catch (const Error&) {  // a constant of the other stack
      }
      if (value == " = " + text) value.clear();
      fmt::print("  {:<14} {} {}{}\n", role.name, kinds.at(rule), text, value);
    }
  }
  if (!scheme.rules.contains("init.gain") && !scheme.rules.contains("init.std"))
    fmt::print("  {:<14} Xavier, gain 1\n", "all weights");
}

std::string law(double exponent) {
  if (!std::isfinite(exponent)) return "nothing to fit";
  return std::abs(exponent) < 0.05 ? "constant" : fmt::format("N^{:.2f}", exponent);
}

void print_theory(const Explanation& said) {
  if (!said.exponents) {
    fmt::print("  {}\n", said.not_predicted);
    return;
  }
  fmt::print("  {:<14} {}\n", "stream rms", law(said.exponents->stream_rms));
  fmt::print("  {:<14} {} in the last layer, {} in the first\n", "gradients", law(said.exponents->last_gradient),
             law(said.exponents->first_gradient));
  fmt::print("  {:<14} {}\n", "amplification", law(said.exponents->amplification));
}

}  // namespace

Json summary(const Scheme& scheme) {
  return {{"name", scheme.name}, {"title", scheme.title}, {"source", scheme.source}, {"formula", headline(scheme)}};
}

std::string note_on(const SchemeEntry& entry) {
  if (entry.file.empty()) return "";
  return fmt::format("from {}{}", entry.file.string(),
                     entry.replaces ? fmt::format(", instead of norma's own '{}'", entry.name) : "");
}

void print_json(const SchemesOptions& options, const SchemeEntry& entry, const Explanation& said) {
  const Scheme& scheme = *entry.scheme;
  Json all = summary(scheme);
  if (!entry.file.empty()) all["file"] = entry.file.string();
  for (const auto& [key, formula] : scheme.formulas) all["formulas"][key] = print_formula(formula);
  all["constants"] = Json::object();
  for (const NamedExpression& constant : constants_for(options, scheme)) {
    if (said.first.contains(constant.name))
      all["constants"][constant.name] = {{"first", said.first.at(constant.name)},
                                         {"last", said.last.at(constant.name)}};
  }
  for (const auto& [rule, entries] : scheme.rules) {
    for (const NamedExpression& role : entries) all["rules"][rule][role.name] = print_expression(*role.value);
  }
  all["family"] = name_of(options.family);
  all["layers"] = options.layers;
  all["width"] = options.width;
  all["heads"] = options.heads;
  all["norm"] = options.norm;
  const auto or_null = [](bool given, auto value) { return given ? Json(value()) : Json(); };
  all["norm_instances"] = or_null(said.budget.has_value(), [&] { return said.budget->norm_instances; });
  all["norm_parameters"] = or_null(said.budget.has_value(), [&] { return said.budget->norm_parameters; });
  all["stack_parameters"] = or_null(said.budget.has_value(), [&] { return said.budget->stack_parameters; });
  all["flops_per_token"] = or_null(said.cost.has_value(), [&] { return said.cost->flops; });
  all["bytes_per_token"] = or_null(said.cost.has_value(), [&] { return said.cost->bytes; });
  if (said.exponents) {
    const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
    all["exponents"] = {{"stream_rms", number(said.exponents->stream_rms)},
                        {"last_gradient", number(said.exponents->last_gradient)},
                        {"first_gradient", number(said.exponents->first_gradient)},
                        {"amplification", number(said.exponents->amplification)}};
  }
  if (!said.not_built.empty()) all["not_built"] = said.not_built;
  if (!said.not_predicted.empty()) all["not_predicted"] = said.not_predicted;
  fmt::print("{}\n", all.dump(2));
}

void print_text(const SchemesOptions& options, const SchemeEntry& entry, const Explanation& said,
                const DiagramOptions& drawing) {
  const Scheme& scheme = *entry.scheme;
  fmt::print("{}\n", scheme.title);
  if (!scheme.source.empty()) fmt::print("{}\n", scheme.source);
  if (!entry.file.empty()) fmt::print("{}\n", note_on(entry));
  fmt::print("\n");
  for (const auto& [key, formula] : scheme.formulas) fmt::print("  {:<14} {}\n", key, print_formula(formula));
  for (const NamedExpression& stream : scheme.streams)
    fmt::print("  {:<14} starts as {}\n", "stream " + stream.name, print_expression(*stream.value));
  try {
    fmt::print("\n{}", indented(diagram_text(scheme, drawing)));
  } catch (const Error& error) {  // too wide for a terminal
    fmt::print("\n  {}\n", error.what());
  }
  const bool both = options.family == Family::encoder_decoder;
  fmt::print("\n{} of {} layers, width {}, {} heads{}\n", name_of(options.family),
             both ? fmt::format("{0} + {0}", options.layers) : fmt::format("{}", options.layers), options.width,
             options.heads, both ? "; constants are the decoder's" : "");
  print_constants(options, scheme, said);
  print_rules(scheme, said);
  if (said.budget) {
    fmt::print("  {:<14} {} with {} parameters, of {} in the stack\n", "norms", said.budget->norm_instances,
               said.budget->norm_parameters, said.budget->stack_parameters);
    fmt::print(
        "  {:<14} {}FLOP to train it, {} through memory forward; {} tokens in a sequence, 256 in the vocabulary\n",
        "one token", with_units(said.cost->flops), bytes_text(said.cost->bytes), said.cost->time);
  } else {
    fmt::print("  {}\n", said.not_built);
  }
  fmt::print("\nwith depth N, at initialisation, from {} to {} layers of width {} (docs/theory.md)\n",
             kTheoryDepths.front(), kTheoryDepths.back(), kTheoryWidth);
  print_theory(said);
}

}  // namespace norma::cli
