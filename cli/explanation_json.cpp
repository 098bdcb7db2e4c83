#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/explanation.h"
#include "cli/output.h"

namespace norma::cli {
namespace {

using Json = nlohmann::json;

// Constants that do not depend on the step.
Json constants_in(const Scheme& scheme, const StackNumbers& stack) {
  Json all = Json::object();
  for (const NamedExpression& constant : constants_of(scheme, stack.kind)) {
    if (stack.first.contains(constant.name))
      all[constant.name] = {{"first", stack.first.at(constant.name)}, {"last", stack.last.at(constant.name)}};
  }
  return all;
}

Json described(const LearnedSpec& learned) {
  Json shape = Json::array();
  if (learned.extent != LearnedSpec::Extent::listed)
    shape.push_back(learned.extent == LearnedSpec::Extent::one ? "1" : "d");
  for (const ExpressionPtr& size : learned.shape) shape.push_back(print_expression(*size));
  Json one = {{"name", learned.name},
              {"shape", shape},
              {"init", print_expression(*learned.init)},
              {"per", name_of(learned.per)},
              {"decay", learned.decay.value_or(true)},
              {"lr", learned.lr == nullptr ? "1" : print_expression(*learned.lr)}};
  if (learned.stored != nullptr) one["stored"] = print_expression(*learned.stored);
  if (learned.from == LearnedSpec::From::condition) one["from"] = "condition";
  if (learned.profile != nullptr) one["profile"] = print_expression(*learned.profile);
  return one;
}

}  // namespace

Json summary(const Scheme& scheme) {
  return {{"name", scheme.name}, {"title", scheme.title}, {"source", scheme.source}, {"formula", headline(scheme)}};
}

void print_json(const SchemesOptions& options, const SchemeEntry& entry, const Explanation& said) {
  const Scheme& scheme = *entry.scheme;
  Json all = summary(scheme);
  if (!entry.file.empty()) all["file"] = entry.file.string();
  for (const auto& [key, formula] : scheme.formulas) all["formulas"][key] = print_formula(formula);
  all["constants"] = constants_in(scheme, said.stacks.back());
  if (said.stacks.size() > 1) all["encoder_constants"] = constants_in(scheme, said.stacks.front());
  all["learned"] = Json::array();
  for (const LearnedSpec& learned : scheme.learned) all["learned"].push_back(described(learned));
  for (const auto& [rule, entries] : scheme.rules) {
    for (const NamedExpression& role : entries) all["rules"][rule][role.name] = print_expression(*role.value);
  }
  all["family"] = options.about.family->name;
  all["layers"] = options.about.layers;
  all["width"] = options.about.width;
  all["heads"] = options.about.heads;
  all["norm"] = name_of(said.theory_model.norm);
  const auto or_null = [](bool given, auto value) { return given ? Json(value()) : Json(); };
  all["norm_instances"] = or_null(said.budget.has_value(), [&] { return said.budget->norm_instances; });
  all["norm_parameters"] = or_null(said.budget.has_value(), [&] { return said.budget->norm_parameters; });
  all["stack_parameters"] = or_null(said.budget.has_value(), [&] { return said.budget->stack_parameters; });
  all["flops_per_token"] = or_null(said.cost.has_value(), [&] { return said.cost->flops; });
  all["bytes_per_token"] = or_null(said.cost.has_value(), [&] { return said.cost->bytes; });
  all["counted"] = or_null(said.cost.has_value(), [&] { return said.cost->unit; });  // what the two before are of
  if (said.exponents) {
    const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
    all["exponents"] = {{"stream_rms", number(said.exponents->stream_rms)},
                        {"last_gradient", number(said.exponents->last_gradient)},
                        {"first_gradient", number(said.exponents->first_gradient)},
                        {"amplification", number(said.exponents->amplification)}};
    all["exponents_at"] = {
        {"layers", options.about.depths}, {"width", said.theory_model.width}, {"time", said.theory_model.time}};
    for (const auto& [name, size] : said.theory_model.sizes) all["exponents_at"]["sizes"][name] = size;
  }
  if (!said.not_built.empty()) all["not_built"] = said.not_built;
  if (!said.not_predicted.empty()) all["not_predicted"] = said.not_predicted;
  write_json(all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace norma::cli
