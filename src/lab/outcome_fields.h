// Runs and what they say together, as JSON.
#pragma once

#include "core/json_fields.h"
#include "lab/findings_fields.h"
#include "norma/lab/sweep_results.h"

namespace norma {

template <typename Io>
void fields(Io& io, In<Io, LossCurve>& curve) {
  io.field("step", curve.step);
  io.field("loss", curve.loss);
  io.expect(curve.loss.size() == curve.step.size(), "loss", "a loss for each step");
}

template <typename Io>
void fields(Io& io, In<Io, RunOutcome>& run) {
  io.field("id", run.id);
  io.field("scheme", run.scheme);
  io.field("layers", run.layers);
  io.field("width", run.width);
  io.field("lr", run.lr);
  io.field("warmup", run.warmup);
  io.field("seed", run.seed);
  io.field("status", run.status);
  io.field("axes", run.axes);
  io.derived("diverged", run.diverged());
  io.or_null("diverged_at_step", run.diverged_at_step);
  io.or_null("diverged_because", run.diverged_because);
  io.or_null("first_bad_wire", run.first_bad_wire);
  io.or_null("stopped_at_step", run.stopped_at_step);
  io.field("final_loss", run.final_loss);
  io.field("best_loss", run.best_loss);
  io.field("evaluation_loss", run.evaluation_loss);
  io.field("tokens_per_second", run.tokens_per_second);
  std::string verdict = run.verdict();
  io.field("verdict", verdict);
  if constexpr (Io::kReads) {
    run.outcome = outcome_of_verdict(verdict);
    io.expect(run.outcome.has_value() || verdict.empty(), "verdict",
              "nothing, or an outcome such as \"stable\" or \"diverged at step 17: not finite\"");
  }
  io.field("curve", run.curve);
  io.field("evaluations", run.evaluations);
  io.sparse("stage", run.stage);
  if (run.stage) io.field("steps", run.steps);
}

template <typename Io, typename Rows>
void expect_rows(Io& io, const Rows& rows, const StabilityMap& map, const char* key) {
  bool fits = rows.size() == map.y.size();
  for (const auto& row : rows) fits = fits && row.size() == map.lr.size();
  io.expect(fits, key, "a row for each value of y, with a cell for each value of x");
}

template <typename Io>
void fields(Io& io, In<Io, StabilityMap>& map) {
  io.field("scheme", map.scheme);
  io.or_null("layers", map.layers);
  io.field("rest", map.rest);
  io.object("x", [&](Io& x) {
    x.derived("name", "lr");
    x.field("values", map.lr);
  });
  io.object("y", [&](Io& y) {
    y.field("name", map.y_name);
    y.expect(map.y_name == "warmup" || map.y_name == "layers", "name", "warmup or layers");
    y.field("values", map.y);
  });
  io.field("loss", map.loss);
  io.field("diverged", map.diverged);
  if (map.y_name == "layers") io.field("warmup", map.warmup);
  expect_rows(io, map.loss, map, "loss");
  expect_rows(io, map.diverged, map, "diverged");
}

template <typename Io>
void fields(Io& io, In<Io, StableRate>& rate) {
  io.field("lr", rate.lr);
  io.field("low", rate.low);
  io.field("high", rate.high);
  io.field("beyond", rate.beyond);
}

template <typename Io>
void fields(Io& io, In<Io, Tuned>& tuned) {
  io.field("scheme", tuned.scheme);
  io.field("layers", tuned.layers);
  io.field("rest", tuned.rest);
  io.field("lr", tuned.lr);
  io.field("warmup", tuned.warmup);
  io.field("loss", tuned.loss);
  io.derived("sensitivity", tuned.sensitivity ? std::optional(tuned.sensitivity->mean) : std::nullopt);
  io.field("sensitivity_estimate", tuned.sensitivity);
  io.derived("largest_stable_lr", tuned.with_warmup.lr);
  io.derived("largest_stable_lr_without_warmup", tuned.without_warmup.lr);
  io.field("stable_lr", tuned.with_warmup);
  io.field("stable_lr_without_warmup", tuned.without_warmup);
  io.field("needs_warmup", tuned.needs_warmup);
  io.field("diverged", tuned.diverged);
  io.field("steps_to_target", tuned.steps_to_target.steps);
  io.field("target", tuned.target);
  io.sparse("steps", tuned.steps);
  io.sparse("accuracy", tuned.accuracy);
}

template <typename Io>
void fields(Io& io, In<Io, RampLimit>& ramp) {
  io.field("scheme", ramp.scheme);
  io.field("layers", ramp.layers);
  io.field("rest", ramp.rest);
  io.field("lr", ramp.lr);
  io.field("beyond", ramp.beyond);
}

template <typename Io>
void fields(Io& io, In<Io, DepthEfficiency>& efficiency) {
  io.field("scheme", efficiency.scheme);
  io.field("rest", efficiency.rest);
  io.field("layers", efficiency.layers);
  io.field("loss", efficiency.loss);
  io.field("gain_per_doubling", efficiency.gain_per_doubling);
  io.field("useful_layers", efficiency.useful_layers);
  io.field("useful_share", efficiency.useful_share);
  io.expect(efficiency.loss.size() == efficiency.layers.size(), "loss", "a loss for each depth");
}

}  // namespace norma
