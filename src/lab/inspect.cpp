#include "norma/lab/inspect.h"

#include <algorithm>
#include <cmath>

#include "lab/collector.h"
#include "lab/theory_curves.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/models/budget.h"
#include "norma/schemes/diagram.h"

namespace norma {
namespace {

constexpr const char* kDepth = "depth";

bool asks_for_depth(const std::vector<std::string>& only) {
  return std::find(only.begin(), only.end(), kDepth) != only.end();
}

std::vector<Instrument> chosen(const std::vector<std::string>& only, int batches) {
  const std::vector<Instrument> all = instruments(batches);
  if (only.empty()) return all;
  const std::vector<std::string> names = instrument_names();
  std::vector<Instrument> result;
  for (const std::string& name : only) {
    if (name == kDepth) continue;
    const auto found = std::find_if(all.begin(), all.end(), [&](const Instrument& one) { return one.name == name; });
    if (found == all.end())
      fail("there is no analysis '{}'{}; expected some of {}", name, did_you_mean(name, names), fmt::join(names, ", "));
    const bool repeated = std::ranges::any_of(result, [&](const Instrument& one) { return one.name == name; });
    if (!repeated) result.push_back(*found);
  }
  return result;
}

// The layer as svg and text. Numbers never depend on a drawing: what cannot be drawn, such as a text too wide for a
// terminal, is left out, and the summary says why.
void draw_layer(const Scheme& scheme, const ModelConfig& model, SchemeSummary& summary) {
  using Cross = DiagramOptions::Cross;
  const DiagramOptions options{.layers = model.layers,
                               .width = model.width,
                               .heads = model.heads,
                               .cross = model.family == Family::encoder_decoder ? Cross::present : Cross::absent};
  try {
    summary.diagram_svg = diagram_svg(scheme, options);
    summary.diagram_text = diagram_text(scheme, options);
  } catch (const std::exception& problem) {
    summary.diagram_note = problem.what();
  }
}

void check(const InspectOptions& options) {
  if (options.schemes.empty()) fail("there is no scheme to inspect");
  if (options.depths.empty()) fail("there is no depth to inspect");
  for (const std::int64_t depth : options.depths) {
    if (depth < 1) fail("a depth of {} layers; expected at least 1", depth);
  }
  NORMA_ASSERT(options.open != nullptr);
}

}  // namespace

ModelConfig initial_model(Family family, std::int64_t width) {
  ModelConfig model{.family = family, .width = width, .heads = 4};
  model.batch = 4;
  model.time = 64;
  model.scale_embedding = true;
  model.embedding_std = 1 / std::sqrt(static_cast<double>(width));
  return model;
}

SchemeSummary summarise_scheme(const ModelConfig& model) {
  const Scheme& scheme = *model.scheme;
  SchemeSummary summary{.name = model.scheme.asked(),
                        .title = scheme.title.empty() ? model.scheme.asked() : scheme.title,
                        .source = scheme.source,
                        .formulas = {},
                        .layers = model.layers,
                        .by_role = {}};
  draw_layer(scheme, model, summary);
  for (const auto& [key, formula] : scheme.formulas) summary.formulas.emplace_back(key, print_formula(formula));
  const Budget budget = model_budget(model);
  summary.norm_instances = budget.norm_instances;
  summary.norm_parameters = budget.norm_parameters;
  summary.parameters = budget.parameters;
  summary.by_role.assign(budget.by_role.begin(), budget.by_role.end());
  return summary;
}

std::vector<std::string> instrument_names() {
  std::vector<std::string> names;
  for (const Instrument& instrument : instruments(1)) names.push_back(instrument.name);
  names.emplace_back(kDepth);
  return names;
}

Findings inspect(const InspectOptions& options, const Progress& progress) {
  check(options);
  const std::vector<Instrument> used = chosen(options.only, options.batches);
  std::vector<std::int64_t> depths = options.depths;
  std::sort(depths.begin(), depths.end());
  depths.erase(std::unique(depths.begin(), depths.end()), depths.end());
  Findings findings;
  std::vector<ModelConfig> models;
  std::vector<std::string> names;
  double total = 0, done = 0, each = 0;
  for (const Instrument& instrument : used) each += instrument.cost;
  for (const SchemeChoice& scheme : options.schemes) {
    ModelConfig model = options.model;
    model.scheme = scheme;
    names.push_back(scheme.asked());
    for (const std::int64_t depth : depths) {
      model.layers = depth;
      if (options.model.encoder_layers != 0) model.encoder_layers = depth;
      models.push_back(model);
      total += each * static_cast<double>(depth);
    }
  }
  Collector collector(used);
  for (const ModelConfig& model : models) {
    const Subject subject = initial_subject(model, options.open(model), options.seeds, options.threads);
    if (model.layers == depths.back()) findings.schemes.push_back(summarise_scheme(subject.model));
    for (const Instrument& instrument : used) {
      if (progress)
        progress(done / total, fmt::format("{}, {} layers: {}", model.scheme.asked(), model.layers, instrument.name));
      collector.add(model.scheme.asked(), subject.model, instrument.measure(subject));
      done += instrument.cost * static_cast<double>(model.layers);
    }
    if (asks_for_depth(options.only)) findings.depth_use.push_back(inspect_depth(subject, findings.notes, progress));
  }
  if (progress) progress(1, "");
  findings.analyses = collector.finish(names);
  if (options.theory) {
    for (const SchemeChoice& scheme : options.schemes) {
      ModelConfig model = options.model;
      model.scheme = scheme;
      add_theory_curves(findings, model);
    }
  }
  return findings;
}

Findings inspect(const Subject& subject, const std::vector<std::string>& only, int batches, const Progress& progress) {
  const std::vector<Instrument> used = chosen(only, batches);
  Findings findings;
  findings.schemes.push_back(summarise_scheme(subject.model));
  Collector collector(used);
  double total = 0, done = 0;
  for (const Instrument& instrument : used) total += instrument.cost;
  for (const Instrument& instrument : used) {
    if (progress) progress(done / total, instrument.name);
    collector.add(subject.model.scheme.asked(), subject.model, instrument.measure(subject));
    done += instrument.cost;
  }
  if (progress) progress(1, "");
  findings.analyses = collector.finish({subject.model.scheme.asked()});
  if (only.empty() || asks_for_depth(only))
    findings.depth_use.push_back(inspect_depth(subject, findings.notes, progress));
  return findings;
}

}  // namespace norma
