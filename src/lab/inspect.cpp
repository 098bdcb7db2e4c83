#include "norma/lab/inspect.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lab/theory_curves.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/lab/depth_use.h"
#include "norma/lab/lens.h"
#include "norma/lab/paths.h"
#include "norma/models/budget.h"
#include "norma/schemes/catalogue.h"
#include "norma/schemes/diagram.h"

namespace norma {
namespace {

constexpr const char* kDepth = "depth";

bool asks_for_depth(const std::vector<std::string>& only) {
  return std::find(only.begin(), only.end(), kDepth) != only.end();
}

std::vector<double> means_of(const std::vector<std::vector<double>>& values) {
  std::vector<double> means;
  for (const std::vector<double>& one : values) means.push_back(estimate_of(one).mean);
  return means;
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

// What cannot be drawn, such as one too wide for a terminal, is left out.
std::string drawn(std::string (*draw)(const Scheme&, const DiagramOptions&), const Scheme& scheme,
                  const ModelConfig& model) {
  using Cross = DiagramOptions::Cross;
  try {
    return draw(scheme, {.layers = model.layers,
                         .width = model.width,
                         .heads = model.heads,
                         .cross = model.family == Family::encoder_decoder ? Cross::present : Cross::absent});
  } catch (const Error&) {
    return "";
  }
}

// Readings of one scheme by analysis, in the order of depths.
struct Collected {
  std::vector<double> x;
  std::vector<std::int64_t> depths;
  std::vector<Reading> readings;
};

std::vector<Estimate> estimates_of(const std::vector<std::vector<double>>& values) {
  std::vector<Estimate> result;
  for (const std::vector<double>& one : values) result.push_back(estimate_of(one));
  return result;
}

std::optional<Exponent> exponent_of(ExponentOver over, const Collected& collected) {
  if (over == ExponentOver::none || collected.readings.empty()) return std::nullopt;
  if (over == ExponentOver::depth) {
    std::vector<std::vector<double>> values;
    for (const Reading& reading : collected.readings) values.push_back(reading.value);
    return power_law(collected.x, values);
  }
  // The first sites still remember the embedding; a law along the depth is fitted from the fourth on.
  constexpr std::size_t kFirst = 3;
  const std::vector<std::vector<double>>& profile = collected.readings.back().profile;
  if (profile.size() < kFirst + 4) return std::nullopt;
  std::vector<double> k;
  for (std::size_t i = kFirst; i < profile.size(); ++i) k.push_back(static_cast<double>(i + 1));
  return power_law(k, std::span(profile).subspan(kFirst));
}

MeasuredHistogram histogram_of(const SingularValueHistogram& found, std::int64_t depth) {
  MeasuredHistogram histogram{.depth = depth, .exact = found.exact, .edges = {}, .share = {}};
  const LogHistogram& first = found.members.front();
  const std::size_t bins = first.share.size();
  for (std::size_t edge = 0; edge <= bins; ++edge) {
    const double place = static_cast<double>(edge) / static_cast<double>(bins);
    histogram.edges.push_back(std::pow(10, first.low + place * (first.high - first.low)));
  }
  for (std::size_t bin = 0; bin < bins; ++bin) {
    std::vector<double> shares;
    for (const LogHistogram& member : found.members) shares.push_back(member.share[bin]);
    histogram.share.push_back(estimate_of(shares));
  }
  std::vector<double> unresolved;
  for (const LogHistogram& member : found.members) {
    unresolved.push_back(member.unresolved);
    histogram.unresolved_below = std::max(histogram.unresolved_below, member.unresolved_below);
  }
  histogram.unresolved = estimate_of(unresolved);
  return histogram;
}

Series series_of(const std::string& scheme, const AnalysisInfo& info, const Collected& collected) {
  Series series{.scheme = scheme, .x = collected.x, .y = {}};
  for (std::size_t i = 0; i < collected.readings.size(); ++i) {
    const Reading& reading = collected.readings[i];
    series.y.push_back(estimate_of(reading.value));
    if (!reading.sites.empty())
      series.profiles.push_back(
          {.depth = collected.depths[i], .sites = reading.sites, .y = estimates_of(reading.profile)});
    if (reading.histogram) series.histograms.push_back(histogram_of(*reading.histogram, collected.depths[i]));
  }
  series.exponent = exponent_of(info.exponent, collected);
  return series;
}

class Collector {
 public:
  explicit Collector(const std::vector<Instrument>& used) {
    for (const Instrument& instrument : used) {
      for (const AnalysisInfo& info : instrument.analyses) infos_.push_back(info);
    }
  }

  void add(const std::string& scheme, const ModelConfig& model, std::vector<Reading> readings) {
    for (Reading& reading : readings) {
      const auto info =
          std::find_if(infos_.begin(), infos_.end(), [&](const AnalysisInfo& one) { return one.name == reading.name; });
      NORMA_ASSERT(info != infos_.end());
      Collected& collected = found_[{reading.name, scheme}];
      collected.x.push_back(static_cast<double>(info->x == "sublayers" ? sublayers(model) : model.layers));
      collected.depths.push_back(model.layers);
      collected.readings.push_back(std::move(reading));
    }
  }

  std::vector<Analysis> finish(const std::vector<std::string>& schemes) const {
    std::vector<Analysis> all;
    for (const AnalysisInfo& info : infos_) {
      Analysis analysis{.name = info.name,
                        .title = info.title,
                        .x = info.x,
                        .unit = info.unit,
                        .log = info.log,
                        .about = info.about,
                        .source = info.source};
      if (info.exponent == ExponentOver::profile) analysis.exponent_of = "site";
      for (const std::string& scheme : schemes) {
        const auto collected = found_.find({info.name, scheme});
        if (collected != found_.end()) analysis.series.push_back(series_of(scheme, info, collected->second));
      }
      if (!analysis.series.empty()) all.push_back(std::move(analysis));
    }
    return all;
  }

 private:
  std::vector<AnalysisInfo> infos_;
  std::map<std::pair<std::string, std::string>, Collected> found_;
};

void check(const InspectOptions& options) {
  if (options.schemes.empty()) fail("there is no scheme to inspect");
  if (options.depths.empty()) fail("there is no depth to inspect");
  for (const std::int64_t depth : options.depths) {
    if (depth < 1) fail("a depth of {} layers; expected at least 1", depth);
  }
  NORMA_ASSERT(options.open != nullptr);
}

}  // namespace

SchemeSummary summarise_scheme(const ModelConfig& model) {
  const Scheme scheme = find_scheme(model.scheme);
  SchemeSummary summary{.name = model.scheme,
                        .title = scheme.title.empty() ? model.scheme : scheme.title,
                        .source = scheme.source,
                        .formulas = {},
                        .layers = model.layers,
                        .by_role = {},
                        .diagram_svg = drawn(diagram_svg, scheme, model),
                        .diagram_text = drawn(diagram_text, scheme, model)};
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
  double total = 0, done = 0, each = 0;
  for (const Instrument& instrument : used) each += instrument.cost;
  for (const std::string& scheme : options.schemes) {
    ModelConfig model = options.model;
    model.scheme = scheme;
    for (const std::int64_t depth : depths) {
      model.layers = depth;
      if (options.model.encoder_layers != 0) model.encoder_layers = depth;
      models.push_back(model);
      total += each * static_cast<double>(depth);
    }
    find_scheme(scheme);
  }
  Collector collector(used);
  for (const ModelConfig& model : models) {
    const Subject subject = initial_subject(model, options.open(model), options.seeds, options.threads);
    if (model.layers == depths.back()) findings.schemes.push_back(summarise_scheme(subject.model));
    for (const Instrument& instrument : used) {
      if (progress)
        progress(done / total, fmt::format("{}, {} layers: {}", model.scheme, model.layers, instrument.name));
      collector.add(model.scheme, subject.model, instrument.measure(subject));
      done += instrument.cost * static_cast<double>(model.layers);
    }
    if (asks_for_depth(options.only)) findings.depth_use.push_back(inspect_depth(subject, findings.notes, progress));
  }
  if (progress) progress(1, "");
  findings.analyses = collector.finish(options.schemes);
  if (options.theory) {
    for (const std::string& scheme : options.schemes) add_theory_curves(findings, options.model, scheme);
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
    collector.add(subject.model.scheme, subject.model, instrument.measure(subject));
    done += instrument.cost;
  }
  if (progress) progress(1, "");
  findings.analyses = collector.finish({subject.model.scheme});
  if (only.empty() || asks_for_depth(only))
    findings.depth_use.push_back(inspect_depth(subject, findings.notes, progress));
  return findings;
}

DepthFinding inspect_depth(const Subject& subject, std::vector<std::string>& notes, const Progress& progress) {
  const auto tell = [&](double done, std::string_view what) {
    if (progress) progress(done, what);
  };
  const DepthUse use = measure_depth_use(
      subject, {.progress = [&](double done) { tell(0.7 * done, "leaving out, swapping and moving layers"); }});
  DepthFinding found{.scheme = subject.model.scheme,
                     .layers = use.layers,
                     .loss = estimate_of(use.loss),
                     .effective_depth = estimate_of(use.effective_depth),
                     .kept_loss = means_of(use.kept),
                     .deletion = estimates_of(use.deletion),
                     .swap = estimates_of(use.swap),
                     .width_equivalence = estimates_of(use.width_equivalence),
                     .influence = estimates_of(use.influence),
                     .angular_distance = use.angular_distance};
  tell(0.7, "logit lens");
  const LogitLens lens = measure_lens(subject);
  found.lens_divergence = means_of(lens.divergence);
  found.lens_agreement = means_of(lens.agreement);
  try {
    tell(0.8, "linear probes");
    found.probe = estimates_of(measure_probes(subject));
  } catch (const Error& error) {
    notes.push_back(fmt::format("no linear probes: {}", error.what()));
  }
  try {
    tell(0.9, "path lengths");
    found.path_share = means_of(measure_path_lengths(subject).share);
  } catch (const Error& error) {
    notes.push_back(fmt::format("no path lengths: {}", error.what()));
  }
  tell(1, "");
  return found;
}

}  // namespace norma
