// Numbers with intervals, schemes and what analyses found, as JSON.
#pragma once

#include "core/json_fields.h"
#include "norma/lab/findings.h"

namespace norma {

template <typename Io>
void fields(Io& io, In<Io, Estimate>& estimate) {
  io.field("mean", estimate.mean);
  io.field("low", estimate.low);
  io.field("high", estimate.high);
  io.field("n", estimate.n);
}

template <typename Io>
void fields(Io& io, In<Io, Exponent>& exponent) {
  io.field("value", exponent.value);
  io.field("low", exponent.low);
  io.field("high", exponent.high);
}

template <typename Io>
void fields(Io& io, In<Io, SchemeSummary>& scheme) {
  io.field("name", scheme.name);
  io.field("title", scheme.title);
  io.field("source", scheme.source);
  io.sparse("formulas", scheme.formulas);
  io.field("layers", scheme.layers);
  io.field("norm_instances", scheme.norm_instances);
  io.field("norm_parameters", scheme.norm_parameters);
  io.field("parameters", scheme.parameters);
  io.sparse("parameters_by_role", scheme.by_role);
  io.sparse("diagram_svg", scheme.diagram_svg);
  io.sparse("diagram_text", scheme.diagram_text);
  io.sparse("diagram_note", scheme.diagram_note);
}

template <typename Io>
void fields(Io& io, In<Io, LayerProfile>& profile) {
  io.field("depth", profile.depth);
  io.field("sites", profile.sites);
  io.field("y", profile.y);
  io.sparse("theory", profile.theory);
  io.expect(profile.y.size() == profile.sites.size(), "y", "a value for each of the sites");
}

template <typename Io>
void fields(Io& io, In<Io, MeasuredHistogram>& histogram) {
  io.field("depth", histogram.depth);
  std::string method = histogram.exact ? "exact" : "projections";
  io.field("method", method);
  io.expect(method == "exact" || method == "projections", "method", "exact or projections");
  if constexpr (Io::kReads) histogram.exact = method == "exact";
  io.field("edges", histogram.edges);
  io.field("share", histogram.share);
  io.expect(histogram.edges.size() == histogram.share.size() + 1, "edges", "one more than there are shares");
  if (histogram.exact) return;
  io.field("unresolved", histogram.unresolved);
  io.field("unresolved_below", histogram.unresolved_below);
}

template <typename Io>
void fields(Io& io, In<Io, TheoryCurve>& theory) {
  io.field("y", theory.y);
  io.sparse("exponent", theory.exponent);
}

template <typename Io>
void fields(Io& io, In<Io, Series>& series) {
  io.field("scheme", series.scheme);
  io.field("x", series.x);
  io.field("y", series.y);
  io.sparse("exponent", series.exponent);
  io.sparse("theory", series.theory);
  io.field("profiles", series.profiles);
  io.sparse("histograms", series.histograms);
  io.expect(series.y.size() == series.x.size(), "y", "a value for each x");
}

template <typename Io>
void fields(Io& io, In<Io, Analysis>& analysis) {
  io.field("name", analysis.name);
  io.field("title", analysis.title);
  io.field("x", analysis.x);
  io.field("unit", analysis.unit);
  io.field("log", analysis.log);
  io.field("about", analysis.about);
  io.field("source", analysis.source);
  io.field("series", analysis.series);
  io.sparse("exponent_of", analysis.exponent_of);
}

template <typename Io>
void fields(Io& io, In<Io, DepthFinding>& found) {
  io.field("scheme", found.scheme);
  io.field("layers", found.layers);
  io.sparse("layer_names", found.layer_names);
  io.field("loss", found.loss);
  io.field("effective_depth", found.effective_depth);
  io.object("curve", [&](Io& curve) {
    std::vector<double> layers_kept;
    for (std::size_t k = 0; k < found.kept_loss.size(); ++k) layers_kept.push_back(static_cast<double>(k));
    curve.derived("layers_kept", layers_kept);
    curve.field("loss", found.kept_loss);
  });
  io.field("deletion", found.deletion);
  io.field("swap", found.swap);
  io.field("width_equivalence", found.width_equivalence);
  io.field("influence", found.influence);
  io.field("angular_distance", found.angular_distance);
  io.object("lens", [&](Io& lens) {
    lens.field("kl", found.lens_divergence);
    lens.field("agreement", found.lens_agreement);
  });
  io.sparse("probe", found.probe);
  io.sparse("path_length", found.path_share);
}

}  // namespace norma
