// A diagnosis as JSON (docs/diagnose.md).
#include <nlohmann/json.hpp>

#include "core/json_fields.h"
#include "core/json_write.h"
#include "norma/lab/diagnose.h"
#include "norma/version.h"

namespace norma {

template <typename Io>
void fields(Io& io, In<Io, DiagnosisEvidence>& evidence) {
  io.field("text", evidence.words);
  io.field("value", evidence.value);
  io.field("against", evidence.against);
  io.sparse("step", evidence.step);
  io.sparse("site", evidence.site);
}

template <typename Io>
void fields(Io& io, In<Io, Suggestion>& suggestion) {
  io.field("text", suggestion.words);
  io.field("changes", suggestion.changes);
  io.field("because", suggestion.because);
}

template <typename Io>
void fields(Io& io, In<Io, Diagnosis>& diagnosis) {
  io.field("member", diagnosis.member);
  io.field("seed", diagnosis.seed);
  io.field("condition", diagnosis.condition);
  io.field("cause", diagnosis.cause);
  io.field("words", diagnosis.words);
  io.field("evidence", diagnosis.evidence);
  io.field("suggestions", diagnosis.suggestions);
  io.sparse("notes", diagnosis.notes);
}

template <typename Io>
void fields(Io& io, In<Io, TrialResult>& trial) {
  io.field("name", trial.name);
  io.field("change", trial.words);
  io.field("steps", trial.steps);
  io.field("loss", trial.loss);
  io.field("verdict", trial.verdict);
}

template <typename Io>
void fields(Io& io, In<Io, DiagnosisReport>& report) {
  io.field("norma", std::string(NORMA_VERSION));
  io.field("kind", std::string("diagnosis"));
  io.field("run", report.run);
  io.field("scheme", report.scheme);
  io.field("members", report.members);
  io.sparse("trials", report.trials);
  io.sparse("conclusion", report.conclusion);
}

std::string write_diagnosis(const DiagnosisReport& report) {
  return write_json_text<nlohmann::ordered_json, NonFiniteAs::null>(report, 2);
}

}  // namespace norma
