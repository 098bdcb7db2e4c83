#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/explanation.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "norma/core/error.h"
#include "norma/models/rules.h"
#include "norma/schemes/branch_kinds.h"
#include "norma/train/result.h"

namespace norma::cli {
namespace {

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

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    widest = std::max(widest, display_width(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  return widest;
}

// What a constant is, in one stack.
std::string meaning(const NamedExpression& constant, const StackNumbers& stack) {
  const std::string text = print_expression(*constant.value);
  const auto first = stack.first.find(constant.name);
  if (first == stack.first.end()) return text + "  (a schedule over the step t)";
  const double last = stack.last.at(constant.name);
  if (first->second != last)
    return fmt::format("{} = {:.4g} at the first layer, {:.4g} at the last", text, first->second, last);
  const std::string value = fmt::format("{:.4g}", first->second);
  return text == value ? text : text + " = " + value;
}

// Where the two stacks of an encoder-decoder agree, a constant is said once.
void print_constants(const Scheme& scheme, const Explanation& said) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<std::string>> meanings;
  for (const StackNumbers& stack : said.stacks) {
    for (const NamedExpression& constant : constants_of(scheme, stack.kind)) {
      if (!meanings.contains(constant.name)) {
        names.push_back(constant.name);
        meanings[constant.name].resize(said.stacks.size());
      }
      meanings[constant.name][static_cast<std::size_t>(&stack - said.stacks.data())] = meaning(constant, stack);
    }
  }
  for (const std::string& name : names) {
    const std::vector<std::string>& all = meanings.at(name);
    if (all.front() == all.back()) {
      print("  {:<14} {}\n", name, all.front());
      continue;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].empty()) print("  {:<14} {}\n", fmt::format("{}, {}", name, said.stacks[i].scope), all[i]);
    }
  }
}

void print_learned(const Scheme& scheme) {
  for (const LearnedSpec& learned : scheme.learned) {
    constexpr const char* kExtent[] = {"number", "vector", "tensor"};
    const bool rate = learned.lr != nullptr && print_expression(*learned.lr) != "1";
    print("  {:<14} learned {} per {}{}, starts at {}{}{}\n", learned.name, kExtent[static_cast<int>(learned.extent)],
          name_of(learned.per), learned.from == LearnedSpec::From::condition ? ", made of the condition" : "",
          print_expression(*learned.init), learned.decay.value_or(true) ? "" : ", no weight decay",
          rate ? ", learning rate times " + print_expression(*learned.lr) : "");
    if (learned.profile == nullptr) continue;
    print("  {:<14} only the first one; the others are measured on one batch before step 0, each as\n", "");
    print("  {:<14} {} of the sublayer before\n", "", print_expression(*learned.profile));
  }
}

// What multiplies a role's start: a deviation where the scheme or the model gives one, otherwise Xavier's gain or, of
// convolutions, He's.
bool starts_by_deviation(const Scheme& scheme, const std::string& role) {
  if (role == "embedding" || role == "position" || role == "head") return true;
  const auto rules = scheme.rules.find("init.std");
  if (rules == scheme.rules.end()) return false;
  const std::vector<std::string> chain = role_chain(role);
  return std::any_of(rules->second.begin(), rules->second.end(), [&](const NamedExpression& rule) {
    return std::find(chain.begin(), chain.end(), rule.name) != chain.end();
  });
}

std::string rule_words(const Scheme& scheme, const std::string& rule, const std::string& role) {
  if (rule == "init.gain") {
    if (starts_by_deviation(scheme, role)) return "deviation times";
    return role.starts_with("conv") ? "He gain times" : "Xavier gain times";
  }
  const std::map<std::string, std::string> words = {{"init.std", "deviation"},
                                                    {"lr", "learning rate times"},
                                                    {"eps", "Adam's eps times"},
                                                    {"decay", "weight decay times"}};
  return words.at(rule);
}

// " = 0.5", or what it is in each stack; "" where it is said already.
std::string rule_value(const Expression& rule, const Explanation& said) {
  const std::string text = print_expression(rule);
  std::vector<std::string> values;
  for (const StackNumbers& stack : said.stacks) {
    try {
      values.push_back(fmt::format("{:.4g}", evaluate(rule, stack.first, text)));
    } catch (const Error&) {  // a constant of the other stack
      values.emplace_back();
    }
  }
  if (values.front() == values.back()) return values.front().empty() || values.front() == text ? "" : " = " + values[0];
  const auto in_stack = [](const std::string& value, const char* stack) {
    return value.empty() ? "" : fmt::format("{} in the {}", value, stack);
  };
  const std::string encoder = in_stack(values[0], "encoder"), decoder = in_stack(values[1], "decoder");
  return " = " + encoder + (encoder.empty() || decoder.empty() ? "" : ", ") + decoder;
}

// "Xavier"; "He" of convolutions.
std::string usual_start(const std::vector<const BranchKind*>& kinds) {
  const auto convolves = [](const BranchKind* kind) { return kind->key == "conv"; };
  if (std::ranges::none_of(kinds, convolves)) return "Xavier";
  return std::ranges::all_of(kinds, convolves) ? "He" : "He in convolutions, Xavier elsewhere";
}

// What each role's weights start with, and what its optimiser is told.
void print_rules(const Scheme& scheme, const Explanation& said, const std::vector<const BranchKind*>& kinds) {
  for (const auto& [rule, entries] : scheme.rules) {
    for (const NamedExpression& role : entries) {
      print("  {:<14} {} {}{}\n", role.name, rule_words(scheme, rule, role.name), print_expression(*role.value),
            rule_value(*role.value, said));
    }
  }
  if (!scheme.rules.contains("init.gain") && !scheme.rules.contains("init.std"))
    print("  {:<14} {}, gain 1\n", "all weights", usual_start(kinds));
}

// Whether any branch is divided into heads.
bool has_heads(const std::vector<const BranchKind*>& kinds) {
  return std::ranges::any_of(kinds, [](const BranchKind* kind) {
    return std::ranges::find(kind->options, "head_gain") != kind->options.end();
  });
}

std::string cost_words(const UnitCost& cost) {
  return fmt::format(
      "{}FLOP in training, {} of memory traffic forward; {}", with_units(cost.flops), bytes_text(cost.bytes),
      cost.unit == "token" ? fmt::format("{} tokens per sequence, vocabulary 256", cost.positions) : cost.sizes);
}

std::string law(double exponent, const std::optional<double>& factor) {
  if (factor) return fmt::format("times {:.3g} with every layer", *factor);
  if (!std::isfinite(exponent)) return "nothing to fit";
  return std::abs(exponent) < 0.05 ? "constant" : fmt::format("N^{:.2f}", exponent);
}

void print_theory(const Explanation& said) {
  if (!said.exponents) {
    print("  {}\n", said.not_predicted);
    return;
  }
  print("  {:<14} {}\n", "stream rms", law(said.exponents->stream_rms, said.exponents->stream_factor));
  print("  {:<14} {} in the last layer, {} in the first\n", "gradients",
        law(said.exponents->last_gradient, said.exponents->last_factor),
        law(said.exponents->first_gradient, said.exponents->first_factor));
  print("  {:<14} {}\n", "amplification", law(said.exponents->amplification, said.exponents->amplification_factor));
}

}  // namespace

std::string note_on(const SchemeEntry& entry) {
  if (entry.file.empty()) return "";
  return fmt::format("from {}{}", entry.file.string(),
                     entry.replaces ? fmt::format(", instead of norma's own '{}'", entry.name) : "");
}

void print_text(const SchemesOptions& options, const SchemeEntry& entry, const Explanation& said,
                const DiagramOptions& drawing) {
  const Scheme& scheme = *entry.scheme;
  print("{}\n", scheme.title);
  if (!scheme.source.empty()) print("{}\n", scheme.source);
  if (!entry.file.empty()) print("{}\n", note_on(entry));
  print("\n");
  for (const auto& [key, formula] : scheme.formulas) print("  {:<14} {}\n", key, print_formula(formula));
  for (const NamedExpression& stream : scheme.streams)
    print("  {:<14} starts as {}\n", "stream " + stream.name, print_expression(*stream.value));
  try {
    const std::string drawn = indented(diagram_text(scheme, drawing));
    const std::size_t wide = widest_line(drawn);
    if (wide > output_columns().value_or(wide)) {
      print("\n  (the diagram is {} columns wide; --svg FILE draws it)\n", wide);
    } else {
      print("\n{}", drawn);
    }
  } catch (const std::exception& error) {  // too wide for a terminal; the numbers below need no drawing
    print("\n  {}\n", error.what());
  }
  std::string depths;
  for (const StackNumbers& stack : said.stacks)
    depths += fmt::format("{}{}", depths.empty() ? "" : " + ", stack.first.at("N"));
  print("\n{} of {} layers, width {}{}\n", options.about.family->name, depths, options.about.width,
        has_heads(drawing.branches) ? fmt::format(", {} heads", options.about.heads) : "");
  print_constants(scheme, said);
  print_learned(scheme);
  print_rules(scheme, said, drawing.branches);
  if (scheme.embedding.scale != nullptr)
    print("  {:<14} times {}\n", "tokens", print_expression(*scheme.embedding.scale));
  if (said.budget) {
    print("  {:<14} {} with {} parameters, of {} in the stack\n", "norms", said.budget->norm_instances,
          said.budget->norm_parameters, said.budget->stack_parameters);
    print("  {:<14} {}\n", "one " + said.cost->unit, cost_words(*said.cost));
  } else {
    print("  {}\n", said.not_built);
  }
  const auto [least, most] = std::minmax_element(options.about.depths.begin(), options.about.depths.end());
  const ModelConfig& asked = said.theory_model;
  const bool tokens = counted_unit(asked) == "token";
  print(
      "\nhow it grows with depth N at initialisation, from {} to {} layers of width {}{}, for networks so wide "
      "that all are alike (norma inspect measures it; docs/theory.md)\n",
      *least, *most, asked.width,
      tokens ? fmt::format(" and {} tokens", asked.time) : fmt::format(" ({})", said.theory_sizes));
  print_theory(said);
  print("\n{}\n", said.judgement);
}

}  // namespace norma::cli
