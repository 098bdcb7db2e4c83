#include "norma/lab/inspect.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>

#include "lab/analyses/collector.h"
#include "lab/analyses/settle_law.h"
#include "lab/analyses/theory_curves.h"
#include "lab/workshop.h"
#include "norma/core/arena.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"
#include "norma/core/names.h"
#include "norma/lab/jacobian.h"
#include "norma/lab/study.h"
#include "norma/models/budget.h"
#include "norma/schemes/diagram.h"
#include "norma/train/data.h"

namespace norma {
namespace {

constexpr const char *kDepth = "depth", *kAll = "all";
// A model of so many layers has its depth measured unasked: the time grows with the square of the layers.
constexpr std::int64_t kUsualDepth = 24;

bool asks_for(const std::vector<std::string>& only, const char* name) {
  return std::find(only.begin(), only.end(), name) != only.end();
}
bool asks_for_depth(const std::vector<std::string>& only) { return asks_for(only, kDepth); }

std::vector<Instrument> chosen(const std::vector<std::string>& only, int batches) {
  std::vector<Instrument> all = instruments(batches);
  if (only.empty()) std::erase_if(all, [](const Instrument& one) { return one.on_request; });
  if (only.empty() || asks_for(only, kAll)) return all;
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
  const DiagramOptions options{
      .layers = model.layers, .width = model.width, .heads = model.heads, .branches = last_stack(model).kinds()};
  try {
    summary.diagram_svg = diagram_svg(scheme, options);
    summary.diagram_text = diagram_text(scheme, options);
  } catch (const std::exception& problem) {
    summary.diagram_note = problem.what();
  }
}

// Of an analysis that says nothing, why; and of one that says something of a part alone, of which.
void explain_missing(const std::vector<Instrument>& used, const ModelConfig& model, std::vector<std::string>& notes) {
  if (std::ranges::none_of(used, [](const Instrument& one) { return one.name == "jacobian"; })) return;
  const auto note = [&](std::string text) {
    if (std::ranges::find(notes, text) == notes.end()) notes.push_back(std::move(text));
  };
  if (const std::string why = why_no_jacobian(model, StackEnd::before_final); !why.empty()) {
    note("no Jacobian: " + why);
    return;
  }
  if (const std::string part = jacobian_part(model); !part.empty()) {
    note(fmt::format("the Jacobian is that of {} alone, of {} layers: others change the shape of the stream", part,
                     layers_of_last_stacks(model).size()));
    return;
  }
  const std::string pooled = why_no_jacobian(model, StackEnd::after_final);
  if (!pooled.empty()) note("no Jacobian with the final formula: " + pooled);
}

void check(const InspectOptions& options) {
  if (options.schemes.empty()) fail("there is no scheme to inspect");
  if (options.depths.empty()) fail("there is no depth to inspect");
  for (const std::int64_t depth : options.depths) {
    if (depth < 1) fail("a depth of {} layers; expected at least 1", depth);
  }
  NORMA_ASSERT(options.open != nullptr);
}

// What the readings so far say. Models come by scheme, each scheme's in the order of depth.
std::vector<Analysis> collect(const std::vector<Instrument>& used, const std::vector<ModelConfig>& models,
                              const std::vector<std::string>& names, const std::vector<ModelReadings>& readings) {
  Collector collector(used);
  for (std::size_t index = 0; index < models.size(); ++index) {
    for (const std::vector<Reading>& reading : readings[index].by_instrument)
      collector.add(models[index].scheme.asked(), readings[index].subject.model, reading);
  }
  return collector.finish(names);
}

}  // namespace

ModelConfig initial_model(Family family, std::int64_t width) {
  const ModelConfig studied = default_study_of(family).base.model;
  // A study of transformers is narrower than networks that theories speak of; convolutions take long at any width.
  const bool own =
      std::ranges::any_of(family->study.keys, [](const std::string& key) { return key.starts_with("model.width="); });
  if (width == 0) width = own ? studied.width : 128;
  ModelConfig model{.family = family, .width = width, .heads = 4};
  model.norm = studied.norm;
  model.batch = 4;
  model.time = 64;
  model.scale_embedding = true;
  model.embedding_std = model.head_std = 1 / std::sqrt(static_cast<double>(width));
  for (const FamilyRow::OwnSize& size : family->sizes) {
    if (size.usual > 0) set_size(model, size.name, size.usual);
    // Stages change the shape of the stream: what is measured and predicted along it is of one of them.
    if (size.name == "stages") set_size(model, size.name, 1);
  }
  if (family->batch > 0) model.batch = family->batch;
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
  names.emplace_back(kAll);
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
  const int threads = options.threads > 0 ? options.threads : machine().cores;
  Workshop shop(threads, models_at_once(models, options.seeds.size(), threads));
  std::mutex telling;
  std::size_t made = 0;
  std::vector<ModelReadings> readings(models.size());
  std::vector<std::size_t> order(models.size());  // the deepest first, so that none of them is left for the end
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return models[a].layers > models[b].layers; });
  shop.run_each(models.size(), [&](std::size_t place, const Workshop::Threads& share) {
    const std::size_t index = order[place];
    const ModelConfig& model = models[index];
    Subject subject = initial_subject(model, options.open(model), options.seeds, share(), options.device);
    {
      const std::lock_guard lock(telling);
      readings[index].subject = subject;
    }
    subject.share = share;  // of this room alone
    for (const Instrument& instrument : used) {
      if (progress) {
        const std::lock_guard lock(telling);
        progress(done / total, fmt::format("{}, {} layers: {}", model.scheme.asked(), model.layers, instrument.name));
      }
      std::vector<Reading> reading = instrument.measure(subject);
      const std::lock_guard lock(telling);
      readings[index].by_instrument.push_back(std::move(reading));
      done += instrument.cost * static_cast<double>(model.layers);
      ++made;
      if (options.measured)
        options.measured({.analyses = collect(used, models, names, readings)}, made, models.size() * used.size());
    }
  });
  if (options.settle && settle_law(options, used, models, readings, threads, progress) == Settled::out_of_time)
    findings.notes.push_back(
        fmt::format("{}: its time was up before enough networks had been measured to settle the law of every scheme",
                    options.settle->analysis));
  findings.analyses = collect(used, models, names, readings);
  for (std::size_t index = 0; index < models.size(); ++index) {
    ModelReadings& one = readings[index];
    if (models[index].layers == depths.back()) findings.schemes.push_back(summarise_scheme(one.subject.model));
    one.subject.threads = options.threads;
    one.subject.device = options.device;
    if (asks_for_depth(options.only))
      findings.depth_use.push_back(inspect_depth(one.subject, findings.notes, progress));
  }
  for (const ModelReadings& one : readings) {
    if (one.subject.model.layers == depths.back()) explain_missing(used, one.subject.model, findings.notes);
  }
  if (progress) progress(1, "");
  if (options.theory) {
    for (const SchemeChoice& scheme : options.schemes) {
      ModelConfig model = options.model;
      model.scheme = scheme;
      take_sizes(*readings.front().subject.source, model);  // images have sizes that only the data know
      add_theory_curves(findings, model);
    }
  }
  return findings;
}

Findings inspect(const Subject& subject, const std::vector<std::string>& only, int batches, const Progress& progress,
                 const PartialFindings& measured) {
  const std::vector<Instrument> used = chosen(only, batches);
  const bool deep = only.empty() && subject.model.layers > kUsualDepth;
  const bool depth = (only.empty() && !deep) || asks_for_depth(only) || asks_for(only, kAll);
  Findings findings;
  findings.schemes.push_back(summarise_scheme(subject.model));
  if (deep)
    findings.notes.push_back(fmt::format(
        "what each of the {} layers is worth takes long and was left out: --only depth", subject.model.layers));
  Collector collector(used);
  double total = 0, done = 0;
  for (const Instrument& instrument : used) total += instrument.cost;
  const double of_depth = depth ? 6 * static_cast<double>(subject.model.layers) : 0;  // forward passes, about
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (progress) progress(done / (total + of_depth), used[i].name);
    collector.add(subject.model.scheme.asked(), subject.model, used[i].measure(subject));
    done += used[i].cost;
    findings.analyses = collector.finish({subject.model.scheme.asked()});
    if (measured) measured(findings, i + 1, used.size() + (depth ? 1 : 0));
  }
  explain_missing(used, subject.model, findings.notes);
  if (depth)
    findings.depth_use.push_back(inspect_depth(subject, findings.notes, [&](double share, std::string_view what) {
      if (progress) progress((total + share * of_depth) / (total + of_depth), what);
    }));
  if (progress) progress(1, "");
  return findings;
}

}  // namespace norma
