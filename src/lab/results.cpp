#include "norma/lab/results.h"
#include "lab/json_parts.h"

#include <fmt/chrono.h>

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "norma/version.h"

namespace norma {
namespace {

using nlohmann::ordered_json;

ordered_json estimates(const std::vector<Estimate>& values) {
  ordered_json all = ordered_json::array();
  for (const Estimate& e : values) all.push_back(estimate(e));
  return all;
}

ordered_json exponent(const Exponent& e) {
  return {{"value", json_number(e.value)}, {"low", json_number(e.low)}, {"high", json_number(e.high)}};
}

ordered_json profile_json(const LayerProfile& profile) {
  ordered_json one = {{"depth", profile.depth}, {"sites", profile.sites}, {"y", estimates(profile.y)}};
  if (!profile.theory.empty()) one["theory"] = json_numbers(profile.theory);
  return one;
}

ordered_json histogram_json(const MeasuredHistogram& histogram) {
  ordered_json one = {{"depth", histogram.depth},
                      {"method", histogram.exact ? "exact" : "projections"},
                      {"edges", json_numbers(histogram.edges)},
                      {"share", estimates(histogram.share)}};
  if (histogram.exact) return one;
  one["unresolved"] = estimate(histogram.unresolved);
  one["unresolved_below"] = json_number(histogram.unresolved_below);
  return one;
}

ordered_json series_json(const Series& series) {
  ordered_json one = {{"scheme", series.scheme}, {"x", json_numbers(series.x)}, {"y", estimates(series.y)}};
  if (series.exponent) one["exponent"] = exponent(*series.exponent);
  if (series.theory) {
    one["theory"]["y"] = json_numbers(series.theory->y);
    if (series.theory->exponent) one["theory"]["exponent"] = json_number(*series.theory->exponent);
  }
  one["profiles"] = ordered_json::array();
  for (const LayerProfile& profile : series.profiles) one["profiles"].push_back(profile_json(profile));
  for (const MeasuredHistogram& histogram : series.histograms) one["histograms"].push_back(histogram_json(histogram));
  return one;
}

ordered_json analysis_json(const Analysis& analysis) {
  ordered_json one = {{"name", analysis.name},     {"title", analysis.title},
                      {"x", analysis.x},           {"unit", analysis.unit},
                      {"log", analysis.log},       {"about", analysis.about},
                      {"source", analysis.source}, {"series", ordered_json::array()}};
  if (!analysis.exponent_of.empty()) one["exponent_of"] = analysis.exponent_of;
  for (const Series& series : analysis.series) one["series"].push_back(series_json(series));
  return one;
}

ordered_json depth_json(const DepthFinding& found) {
  std::vector<double> layers_kept;
  for (std::size_t k = 0; k < found.kept_loss.size(); ++k) layers_kept.push_back(static_cast<double>(k));
  ordered_json one = {
      {"scheme", found.scheme},
      {"layers", found.layers},
      {"loss", estimate(found.loss)},
      {"effective_depth", estimate(found.effective_depth)},
      {"curve", {{"layers_kept", json_numbers(layers_kept)}, {"loss", json_numbers(found.kept_loss)}}},
      {"deletion", estimates(found.deletion)},
      {"swap", estimates(found.swap)},
      {"width_equivalence", estimates(found.width_equivalence)},
      {"influence", estimates(found.influence)},
      {"angular_distance", ordered_json::array()},
      {"lens", {{"kl", json_numbers(found.lens_divergence)}, {"agreement", json_numbers(found.lens_agreement)}}}};
  for (const std::vector<double>& row : found.angular_distance) one["angular_distance"].push_back(json_numbers(row));
  if (!found.probe.empty()) one["probe"] = estimates(found.probe);
  if (!found.path_share.empty()) one["path_length"] = json_numbers(found.path_share);
  return one;
}

}  // namespace

ordered_json scheme_json(const SchemeSummary& scheme) {
  ordered_json one = {{"name", scheme.name}, {"title", scheme.title}, {"source", scheme.source}};
  for (const auto& [key, formula] : scheme.formulas) one["formulas"][key] = formula;
  one["layers"] = scheme.layers;
  one["norm_instances"] = scheme.norm_instances;
  one["norm_parameters"] = scheme.norm_parameters;
  one["parameters"] = scheme.parameters;
  for (const auto& [role, count] : scheme.by_role) one["parameters_by_role"][role] = count;
  if (!scheme.diagram_svg.empty()) one["diagram_svg"] = scheme.diagram_svg;
  if (!scheme.diagram_text.empty()) one["diagram_text"] = scheme.diagram_text;
  if (!scheme.diagram_note.empty()) one["diagram_note"] = scheme.diagram_note;
  return one;
}

std::string results_json(const Findings& findings, const Provenance& provenance) {
  ordered_json all = {{"norma", NORMA_VERSION},
                      {"kind", provenance.kind},
                      {"created", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
                      {"seconds", provenance.seconds},
                      {"command", provenance.command}};
  if (!provenance.config.empty()) all["config"] = provenance.config;
  if (!provenance.environment.empty()) all["environment"] = ordered_json::parse(provenance.environment, nullptr, false);
  if (!provenance.task_name.empty()) {
    all["task"] = {{"name", provenance.task_name}, {"description", provenance.task_description}};
    if (provenance.optimum) all["task"]["optimum"] = json_number(*provenance.optimum);
  }
  all["schemes"] = ordered_json::array();
  for (const SchemeSummary& scheme : findings.schemes) all["schemes"].push_back(scheme_json(scheme));
  all["inspect"] = ordered_json::array();
  for (const Analysis& analysis : findings.analyses) all["inspect"].push_back(analysis_json(analysis));
  if (!findings.depth_use.empty()) all["depth_use"] = ordered_json::array();
  for (const DepthFinding& found : findings.depth_use) all["depth_use"].push_back(depth_json(found));
  all["notes"] = findings.notes;
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace norma
