// norma schemes [name or formula]: the catalogue, and one scheme at a given depth and width.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/models/budget.h"
#include "norma/schemes/catalogue.h"
#include "norma/schemes/diagram.h"

namespace norma::cli {
namespace {

struct SchemesOptions {
  std::string name;
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

nlohmann::json summary(const Scheme& scheme) {
  return {{"name", scheme.name}, {"title", scheme.title}, {"source", scheme.source}, {"formula", headline(scheme)}};
}

void list_schemes(const SchemesOptions& options) {
  if (options.json) {
    nlohmann::json all = nlohmann::json::array();
    for (const Scheme& scheme : catalogue()) all.push_back(summary(scheme));
    fmt::print("{}\n", all.dump(2));
    return;
  }
  std::size_t width = 0;
  for (const Scheme& scheme : catalogue()) width = std::max(width, scheme.name.size());
  for (const Scheme& scheme : catalogue())
    fmt::print("{:<{}}  {}\n{:<{}}  {}\n", scheme.name, width, scheme.title, "", width, headline(scheme));
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

void explain(const SchemesOptions& options) {
  const Scheme scheme = find_scheme(options.name);
  const DiagramOptions drawing{
      .layers = options.layers, .layer = options.layer, .width = options.width, .heads = options.heads};
  if (!options.svg.empty()) write_svg(options.svg, diagram_svg(scheme, drawing));
  const StackConfig config{.layers = options.layers, .heads = options.heads, .norm = norm(options.norm).kind};
  std::optional<Budget> budget;
  std::string refusal;
  try {
    budget = stack_budget(scheme, config, options.width);
  } catch (const NotBuiltError& error) {
    refusal = error.what();
  }
  // Constants at the first and the last layer; they differ where a constant depends on the layer.
  const Variables first = stack_numbers(scheme, config, options.width, 1, 1);
  const Variables last = stack_numbers(scheme, config, options.width, options.layers, 2 * options.layers);
  if (options.json) {
    nlohmann::json all = summary(scheme);
    for (const auto& [key, formula] : scheme.formulas) all["formulas"][key] = print_formula(formula);
    all["constants"] = nlohmann::json::object();
    for (const NamedExpression& constant : scheme.constants.common) {
      if (first.contains(constant.name))
        all["constants"][constant.name] = {{"first", first.at(constant.name)}, {"last", last.at(constant.name)}};
    }
    all["layers"] = options.layers;
    all["width"] = options.width;
    all["family"] = "decoder";
    all["norm_instances"] = budget ? nlohmann::json(budget->norm_instances) : nlohmann::json();
    all["norm_parameters"] = budget ? nlohmann::json(budget->norm_parameters) : nlohmann::json();
    all["stack_parameters"] = budget ? nlohmann::json(budget->stack_parameters) : nlohmann::json();
    if (!refusal.empty()) all["not_built"] = refusal;
    fmt::print("{}\n", all.dump(2));
    return;
  }
  fmt::print("{}\n", scheme.title);
  if (!scheme.source.empty()) fmt::print("{}\n", scheme.source);
  fmt::print("\n");
  for (const auto& [key, formula] : scheme.formulas) fmt::print("  {:<12} {}\n", key, print_formula(formula));
  for (const NamedExpression& stream : scheme.streams)
    fmt::print("  {:<12} starts as {}\n", "stream " + stream.name, print_expression(*stream.value));
  fmt::print("\n{}", indented(diagram_text(scheme, drawing)));
  fmt::print("\nat {} layers, width {}\n", options.layers, options.width);
  for (const NamedExpression& constant : scheme.constants.common) {
    const std::string text = print_expression(*constant.value);
    if (!first.contains(constant.name)) {
      fmt::print("  {:<12} {}  (a schedule over the step t)\n", constant.name, text);
    } else if (first.at(constant.name) == last.at(constant.name)) {
      fmt::print("  {:<12} {} = {:.4g}\n", constant.name, text, first.at(constant.name));
    } else {
      fmt::print("  {:<12} {} = {:.4g} at the first layer, {:.4g} at the last\n", constant.name, text,
                 first.at(constant.name), last.at(constant.name));
    }
  }
  for (const LearnedSpec& learned : scheme.learned) {
    constexpr const char* kPer[] = {"sublayer", "layer", "stack"};
    fmt::print("  {:<12} learned{} per {}, starts at {}\n", learned.name,
               learned.extent == LearnedSpec::Extent::width ? " vector" : "", kPer[static_cast<int>(learned.per)],
               print_expression(*learned.init));
  }
  if (budget) {
    fmt::print("  {:<12} {} with {} parameters, of {} in the stack\n", "norms", budget->norm_instances,
               budget->norm_parameters, budget->stack_parameters);
  } else {
    fmt::print("  {}\n", refusal);
  }
}

}  // namespace

void add_schemes(CLI::App& app) {
  const auto options = std::make_shared<SchemesOptions>();
  CLI::App* verb =
      app.add_subcommand("schemes", "The catalogue of schemes, or one scheme (a name or a formula) in detail");
  verb->add_option("scheme", options->name, "Name of a scheme, or a formula such as \"x + f(norm(x))\"");
  verb->add_option("--layers", options->layers, "Depth")->check(CLI::Range(1, 100000));
  verb->add_option("--width", options->width, "Width of the stream")->check(CLI::Range(1, 1 << 20));
  verb->add_option("--heads", options->heads, "Attention heads")->check(CLI::Range(1, 1 << 16));
  verb->add_option("--norm", options->norm, "What `norm` means in a formula");
  verb->add_option("--layer", options->layer, "Which layer to draw, where layers are wired differently");
  verb->add_option("--svg", options->svg, "Write the diagram to this file");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->callback([options] { options->name.empty() ? list_schemes(*options) : explain(*options); });
}

}  // namespace norma::cli
