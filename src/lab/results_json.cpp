// results.json: which part stands where, for writing and reading. A new field goes into `fields` of its type, into
// docs/results.schema.json and docs/results.md.
#include "core/json_read.h"
#include "core/json_write.h"
#include "lab/findings_fields.h"
#include "lab/outcome_fields.h"
#include "norma/lab/results.h"
#include "store/environment_fields.h"

namespace norma {

template <typename Io>
void fields(Io& io, In<Io, TaskFacts>& task) {
  io.field("name", task.name);
  io.sparse("description", task.description);
  io.sparse("optimum", task.optimum);
  io.sparse("unigram", task.unigram);
  io.sparse("unit", task.unit);
}

template <typename Io>
void fields(Io& io, In<Io, ExtraRates>& rates) {
  io.field("scheme", rates.scheme);
  io.field("lr", rates.lr);
  io.field("edge", rates.edge);
}

template <typename Io>
void fields(Io& io, In<Io, CourseRound>& round) {
  io.field("stage", round.stage);
  io.field("steps", round.steps);
  io.field("runs", round.runs);
  io.field("seeds", round.seeds);
  io.field("why", round.why);
}

template <typename Io>
void fields(Io& io, In<Io, Course>& course) {
  io.field("budget", course.budget);
  io.field("tokens", course.tokens);
  io.field("rounds", course.rounds);
}

template <typename Io>
void fields(Io& io, In<Io, Comparison>& pair) {
  io.field("a", pair.a);
  io.field("b", pair.b);
  io.field("difference", pair.difference);
  io.field("p", pair.p);
  io.field("adjusted_p", pair.adjusted_p);
  io.field("apart", pair.apart);
  io.later("lasting", pair.lasting);
  io.sparse("right", pair.right);
}

template <typename Io>
void fields(Io& io, In<Io, EvidenceItem>& item) {
  io.field("text", item.text);
  io.field("value", item.value);
  io.field("low", item.low);
  io.field("high", item.high);
}

template <typename Io>
void fields(Io& io, In<Io, Verdict>& verdict) {
  io.field("scheme", verdict.scheme);
  io.field("rank", verdict.rank);
  io.field("verdict", verdict.verdict);
  io.field("words", verdict.words);
  io.field("evidence", verdict.evidence);
}

template <typename Io>
void fields(Io& io, In<Io, Advice>& advice) {
  io.field("words", advice.words);
  io.sparse("choice", advice.choice);
  io.field("ranking", advice.ranking);
  io.field("confidence", advice.confidence);
  io.field("not_tested", advice.not_tested);
}

namespace {

template <typename Io>
void sweep_fields(Io& io, In<Io, Results>& results) {
  io.field("config", results.config);
  io.field("command", results.command);
  io.sparse("environment", results.environment);
  io.sparse("task", results.task);
  io.field("schemes", results.schemes);
  io.field("runs", results.runs);
  io.field("maps", results.maps);
  io.field("tuned", results.tuned);
  io.field("ramps", results.ramps);
  io.field("depth_efficiency", results.depth_efficiency);
  io.field("notes", results.notes);
}

template <typename Io>
void inspect_fields(Io& io, In<Io, Results>& results) {
  io.field("command", results.command);
  io.sparse("config", results.config);
  io.sparse("environment", results.environment);
  io.sparse("task", results.task);
  io.field("schemes", results.schemes);
  io.field("inspect", results.analyses);
  io.sparse("depth_use", results.depth_use);
  io.field("notes", results.notes);
}

template <typename Io>
void study_fields(Io& io, In<Io, Results>& results) {
  inspect_fields(io, results);
  io.sparse("runs", results.runs);
  if (!results.runs.empty()) {
    io.field("maps", results.maps);
    io.field("tuned", results.tuned);
    io.later("extra_rates", results.extra_rates);
    io.sparse("course", results.course);
    io.later("comparisons", results.comparisons);
  }
  io.field("verdicts", results.verdicts);
  io.field("advice", results.advice);
}

}  // namespace

template <typename Io>
void fields(Io& io, In<Io, Results>& results) {
  io.field("norma", results.norma);
  io.field("kind", results.kind);
  io.field("created", results.created);
  io.field("seconds", results.seconds);
  switch (results.kind) {
    case ResultsKind::inspect: return inspect_fields(io, results);
    case ResultsKind::sweep: return sweep_fields(io, results);
    case ResultsKind::study: return study_fields(io, results);
  }
}

std::string write_results(const Results& results) {
  const int indent = results.kind == ResultsKind::study ? 1 : 2;  // a study has most lines
  return write_json_text<nlohmann::ordered_json, NonFiniteAs::name>(results, indent);
}

Results read_results(std::string_view json, std::string_view file) {
  return read_json_text<Results>(json, file, NonFiniteAs::name);
}

}  // namespace norma
