// Lists and comparisons of runs as JSON (docs/diagnose.md).
#include <nlohmann/json.hpp>

#include "core/json_fields.h"
#include "core/json_write.h"
#include "norma/lab/compare.h"
#include "norma/lab/run_list.h"
#include "norma/version.h"

namespace norma {

template <typename Io>
void fields(Io& io, In<Io, ListedRun>& run) {
  io.field("path", run.path);
  io.field("kind", run.kind);
  io.field("outcome", run.outcome);
  io.field("loss", run.loss);
  io.field("scheme", run.scheme);
  io.field("task", run.task);
  io.field("layers", run.layers);
  io.field("width", run.width);
  io.field("parameters", run.parameters);
  io.field("steps", run.steps);
  io.field("members", run.members);
  io.field("lr", run.lr);
  io.field("written", run.written);
}

template <typename Io>
void fields(Io& io, In<Io, UnreadFolder>& folder) {
  io.field("path", folder.path);
  io.field("why", folder.why);
}

template <typename Io>
void fields(Io& io, In<Io, RunList>& list) {
  io.field("norma", std::string(NORMA_VERSION));
  io.field("kind", std::string("runs"));
  io.field("runs", list.runs);
  io.field("damaged", list.damaged);
  io.field("foreign", list.foreign);
}

template <typename Io>
void compared_curve(Io& io, const char* key, const LossCurve& curve) {
  io.object(key, [&](Io& inside) {
    inside.field("step", curve.step);
    inside.field("loss", curve.loss);
  });
}

template <typename Io>
void fields(Io& io, In<Io, ComparedRun>& run) {
  io.field("name", run.name);
  io.field("path", run.path);
  io.field("group", static_cast<std::int64_t>(run.group));
  io.field("scheme", run.scheme);
  io.field("task", run.task);
  io.field("layers", run.layers);
  io.field("width", run.width);
  io.field("parameters", run.parameters);
  io.field("steps", run.steps);
  io.field("seed", run.seed);
  io.field("data_seed", run.data_seed);
  io.field("lr", run.lr);
  io.field("loss", run.loss);
  io.field("held_out", run.held_out);
  io.field("verdict", run.verdict);
  compared_curve(io, "curve", run.curve);
  compared_curve(io, "evaluations", run.evaluations);
}

template <typename Io>
void compared_estimate(Io& io, const char* key, const Estimate& e) {
  io.object(key, [&](Io& inside) {
    inside.field("mean", e.n > 0 ? e.mean : std::numeric_limits<double>::quiet_NaN());
    inside.field("low", e.n > 0 ? e.low : std::numeric_limits<double>::quiet_NaN());
    inside.field("high", e.n > 0 ? e.high : std::numeric_limits<double>::quiet_NaN());
    inside.field("n", e.n);
  });
}

template <typename Io>
void fields(Io& io, In<Io, RunGroup>& group) {
  io.field("name", group.name);
  io.field("runs", std::vector<std::int64_t>(group.runs.begin(), group.runs.end()));
  compared_estimate(io, "loss", group.loss);
  if (group.accuracy) compared_estimate(io, "accuracy", *group.accuracy);
  io.field("diverged", group.diverged);
}

template <typename Io>
void fields(Io& io, In<Io, ConfigDifference>& difference) {
  io.field("key", difference.key);
  io.field("values", difference.values);
}

template <typename Io>
void fields(Io& io, In<Io, GroupDifference>& pair) {
  io.field("a", static_cast<std::int64_t>(pair.a));
  io.field("b", static_cast<std::int64_t>(pair.b));
  compared_estimate(io, "difference", pair.difference);
  io.field("p", pair.p);
  io.field("supported", pair.supported);
  io.field("words", pair.words);
}

template <typename Io>
void fields(Io& io, In<Io, RunComparison>& comparison) {
  io.field("norma", std::string(NORMA_VERSION));
  io.field("kind", std::string("comparison"));
  io.field("runs", comparison.runs);
  io.field("groups", comparison.groups);
  io.field("differences", comparison.differences);
  io.field("pairs", comparison.pairs);
  io.field("notes", comparison.notes);
}

std::string write_run_list(const RunList& list) {
  return write_json_text<nlohmann::ordered_json, NonFiniteAs::null>(list, 2);
}

std::string write_comparison(const RunComparison& comparison) {
  return write_json_text<nlohmann::ordered_json, NonFiniteAs::null>(comparison, 2);
}

}  // namespace norma
