// norma schemes [name, file or formula]: the catalogue, and one scheme explained at a given depth and width.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/text.h"
#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/models/branch_gains.h"
#include "norma/models/budget.h"
#include "norma/models/fusions.h"
#include "norma/schemes/catalogue.h"
#include "norma/schemes/diagram.h"
#include "norma/schemes/theory.h"

namespace norma::cli {
namespace {

using Json = nlohmann::json;

struct SchemesOptions {
  std::string name;
  std::string family = "decoder";
  std::int64_t layers = 12;
  std::int64_t width = 512;
  std::int64_t heads = 8;
  std::string norm = "layer";
  std::int64_t layer = 0;
  std::string svg;
  bool json = false;
};

// The formula that says most: the whole layer, every sublayer, or the attention sublayer.
std::string headline(const Scheme& scheme) {
  for (const char* key : {"sublayer", "layer", "attention"}) {
    if (const Formula* formula = scheme.formula(key)) return print_formula(*formula);
  }
  return "";
}

Json summary(const Scheme& scheme) {
  return {{"name", scheme.name}, {"title", scheme.title}, {"source", scheme.source}, {"formula", headline(scheme)}};
}

std::string note_on(const SchemeEntry& entry) {
  if (entry.file.empty()) return "";
  return fmt::format("from {}{}", entry.file.string(),
                     entry.replaces ? fmt::format(", instead of norma's own '{}'", entry.name) : "");
}

void list_schemes(const SchemesOptions& options) {
  const std::vector<SchemeEntry> entries = all_schemes();
  if (options.json) {
    Json all = Json::array();
    for (const SchemeEntry& entry : entries) {
      Json one = entry.scheme ? summary(*entry.scheme) : Json{{"name", entry.name}, {"error", entry.error}};
      if (!entry.file.empty()) one["file"] = entry.file.string();
      all.push_back(std::move(one));
    }
    fmt::print("{}\n", all.dump(2));
    return;
  }
  std::size_t width = 0;
  for (const SchemeEntry& entry : entries) {
    if (entry.scheme) width = std::max(width, entry.name.size());
  }
  for (const SchemeEntry& entry : entries) {
    if (!entry.scheme) continue;
    fmt::print("{:<{}}  {}\n{:<{}}  {}\n", entry.name, width, entry->title, "", width, headline(*entry.scheme));
    if (!entry.file.empty()) fmt::print("{:<{}}  {}\n", "", width, note_on(entry));
  }
  for (const SchemeEntry& entry : entries) {
    if (!entry.scheme) fmt::print(stderr, "norma: {}\n", entry.error);
  }
}

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

void write_svg(const std::string& path, const std::string& svg) {
  std::ofstream file(path);
  file << svg;
  if (!file.flush()) fail("cannot write the diagram to '{}'", path);
}

Family family_of(const SchemesOptions& options) {
  if (options.family == "encoder-decoder") return Family::encoder_decoder;
  return options.family == "encoder" ? Family::encoder : Family::decoder;
}

// What one token costs in a forward pass, of a whole model with the shape's default vocabulary.
struct TokenCost {
  double flops = 0;  // of training: forward and backward
  double bytes = 0;  // least traffic of the forward pass, activations and weights
  std::int64_t time = 0;
};

// The model that numbers are given for: as deep and wide as asked, both stacks alike.
ModelConfig model_of(const SchemesOptions& options, const Scheme& scheme) {
  ModelConfig config;
  config.family = family_of(options);
  config.layers = options.layers;
  config.width = options.width;
  config.heads = options.heads;
  config.batch = 1;
  config.scheme = scheme.name == "formula" ? headline(scheme) : options.name;
  config.norm = norm(options.norm).kind;
  return config;
}

TokenCost cost_of(const ModelConfig& config) {
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("loss", model.loss);
  const double tokens = static_cast<double>(config.batch * config.time);
  return {model_flops(config) / tokens, compile(graph, {.rewrites = all_fusions()})->cost().bytes / tokens,
          config.time};
}

// Everything that is said about one scheme; what cannot be said has its reason beside it.
struct Explanation {
  std::optional<Budget> budget;
  std::optional<TokenCost> cost;
  std::string not_built;
  std::optional<Exponents> exponents;
  std::string not_predicted;
  Variables first, last;  // constants at the first and the last layer
};

constexpr std::int64_t kTheoryWidth = 64, kTheoryHeads = 4;  // exponents hardly depend on the width; tables do in time
const std::vector<std::int64_t> kTheoryDepths = {12, 24, 48, 96};

Explanation study(const SchemesOptions& options, const Scheme& scheme) {
  Explanation said;
  const ModelConfig model = model_of(options, scheme);
  try {
    said.budget = model_budget(model);
    said.cost = cost_of(model);
  } catch (const NotBuiltError& error) {
    said.not_built = error.what();
  }
  const bool both = model.family == Family::encoder_decoder;
  StackConfig stack{.layers = options.layers, .heads = options.heads, .norm = model.norm};
  stack.kind = both ? StackKind::decoder : StackKind::single;
  stack.other_layers = both ? options.layers : 0;
  said.first = stack_numbers(scheme, stack, options.width, 1, 1);
  said.last = stack_numbers(scheme, stack, options.width, options.layers, (both ? 3 : 2) * options.layers);
  try {
    const BranchShape shape{.width = kTheoryWidth,
                            .heads = kTheoryHeads,
                            .norm = model.norm,
                            .mask = model.family == Family::encoder ? Mask::full : Mask::causal};
    const double embedding = 2 * model.embedding_std * model.embedding_std;  // tokens and positions
    TheoryConfig config{
        .width = kTheoryWidth, .heads = kTheoryHeads, .norm = model.norm, .input = {.own = embedding, .shared = 0}};
    config.source = config.input;
    if (both) {
      check_predicted_encoder_decoder(scheme, config);
      said.exponents = fit_exponents(scheme, measure_encoder_decoder(scheme, shape), config, kTheoryDepths);
    } else {
      check_predicted(scheme, config);
      said.exponents = fit_exponents(scheme, measure_branches(scheme, shape), config, kTheoryDepths);
    }
  } catch (const NotPredictedError& error) {
    said.not_predicted = error.what();
  }
  return said;
}

std::vector<NamedExpression> constants_for(const SchemesOptions& options, const Scheme& scheme) {
  return constants_of(scheme, family_of(options) == Family::encoder_decoder ? StackKind::decoder : StackKind::single);
}

void explain_json(const SchemesOptions& options, const SchemeEntry& entry, const Explanation& said) {
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
  all["family"] = options.family;
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

void explain_text(const SchemesOptions& options, const SchemeEntry& entry, const Explanation& said,
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
  const bool both = family_of(options) == Family::encoder_decoder;
  fmt::print("\n{} of {} layers, width {}, {} heads{}\n", options.family,
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

void explain(const SchemesOptions& options) {
  const SchemeEntry entry = locate_scheme(options.name);
  if (options.layer < 0 || options.layer > options.layers)
    fail("there is no layer {} in a stack of {}", options.layer, options.layers);
  const bool both = family_of(options) == Family::encoder_decoder;
  const DiagramOptions drawing{.layers = options.layers,
                               .layer = options.layer,
                               .width = options.width,
                               .heads = options.heads,
                               .cross = both ? DiagramOptions::Cross::present : DiagramOptions::Cross::absent};
  if (!options.svg.empty()) write_svg(options.svg, diagram_svg(*entry.scheme, drawing));
  const Explanation said = study(options, *entry.scheme);
  options.json ? explain_json(options, entry, said) : explain_text(options, entry, said, drawing);
}

}  // namespace

void add_schemes(CLI::App& app) {
  const auto options = std::make_shared<SchemesOptions>();
  CLI::App* verb = app.add_subcommand("schemes", "The catalogue of schemes, or one scheme explained");
  verb->add_option("scheme", options->name, "Name of a scheme, a file, or a formula such as \"x + f(norm(x))\"");
  verb->add_option("--family", options->family, "Which model to explain it for")
      ->check(CLI::IsMember({"decoder", "encoder", "encoder-decoder"}));
  verb->add_option("--layers", options->layers, "Depth; of an encoder-decoder, of each stack")
      ->check(CLI::Range(1, 100000));
  verb->add_option("--width", options->width, "Width of the stream")->check(CLI::Range(1, 1 << 20));
  verb->add_option("--heads", options->heads, "Attention heads")->check(CLI::Range(1, 1 << 16));
  verb->add_option("--norm", options->norm, "What `norm` means in a formula");
  verb->add_option("--layer", options->layer, "Which layer to draw, where layers are wired differently");
  verb->add_option("--svg", options->svg, "Write the diagram to this file");
  verb->add_flag("--json", options->json, "Print JSON");
  add_schemes_dir(*verb);
  verb->callback([options] { options->name.empty() ? list_schemes(*options) : explain(*options); });
}

}  // namespace norma::cli
