#include "cli/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/overrides.h"
#include "norma/core/error.h"
#include "norma/core/mapped_file.h"
#include "norma/store/environment.h"
#include "norma/store/folder.h"
#include "norma/store/run_directory.h"

namespace norma::cli {
namespace {

// The largest of a kind of probe over all sites; NaN where there is none.
double largest_probe(const StepRecord& record, std::string_view kind) {
  double largest = std::nan("");
  for (const ProbeValue& probe : record.probes) {
    if (probe.kind == kind && std::isfinite(probe.value) && !(largest >= probe.value)) largest = probe.value;
  }
  return largest;
}

template <typename Value>
void add_metric(RunReport& page, const MemberHistory& member, RunMetric metric, const Value& value_of) {
  for (const StepRecord& record : member.steps) {
    const double value = value_of(record);
    if (!std::isfinite(value) || (metric.log && value <= 0)) continue;
    metric.step.push_back(record.step);
    metric.value.push_back(value);
  }
  if (metric.step.size() > 1) page.metrics.push_back(std::move(metric));
}

void add_metrics(RunReport& page, const MemberHistory& member) {
  const auto named = [](const char* name, bool log) {
    return RunMetric{.name = name, .unit = "", .log = log, .step = {}, .value = {}};
  };
  add_metric(page, member, named("gradient norm", true), [](const StepRecord& record) { return record.gradient_norm; });
  add_metric(page, member, named("largest update of a layer, rms", true),
             [](const StepRecord& record) { return largest_probe(record, "update_rms"); });
  add_metric(page, member, named("largest rms of the stream", true),
             [](const StepRecord& record) { return largest_probe(record, "stream_rms"); });
  add_metric(page, member, named("largest attention logit", true),
             [](const StepRecord& record) { return largest_probe(record, "logit_max"); });
  add_metric(page, member, named("learning rate", false), [](const StepRecord& record) { return record.lr; });
}

std::string sentence_of(std::string words) {
  if (!words.empty() && words[0] >= 'a' && words[0] <= 'z') words[0] = static_cast<char>(words[0] - 'a' + 'A');
  return words + ".";
}

void add_findings(RunReport& page, const Diagnosis& diagnosis, bool name_member) {
  std::string first = name_member ? fmt::format("Member {} (seed {}): ", diagnosis.member, diagnosis.seed) : "";
  first += name_of(diagnosis.condition);
  page.findings.push_back(sentence_of(fmt::format("{}: {}", first, diagnosis.words)));
  for (const DiagnosisEvidence& evidence : diagnosis.evidence) page.findings.push_back(sentence_of(evidence.words));
  for (const Suggestion& suggestion : diagnosis.suggestions)
    page.findings.push_back(fmt::format("To try: {}, because {}.", suggestion.words, suggestion.because));
}

std::string joined_command() { return fmt::format("{}", fmt::join(command_line(), " ")); }

}  // namespace

RunReport page_of(const RunHistory& history, const std::vector<Diagnosis>& found) {
  const RunView view(history.path);
  if (!history.result)  // of a run that has just ended, somebody else has taken it away
    fail("the run in '{}' has not ended, or its DONE was taken away; the same norma train ends it again",
         history.path.string());
  RunReport page{.name = history.path.string(),
                 .command = joined_command(),
                 .config = view.config(),
                 .created = environment_now({}).time,
                 .result = *history.result,
                 .scheme_title = history.config.model.scheme->title,
                 .unit = loss_unit(history.config.model),
                 .counted = counted_unit(history.config.model),
                 .json = view.result()};
  for (const MemberHistory& member : history.members) page.members.push_back({member.curve(), member.evaluations});
  if (!history.members.empty()) add_metrics(page, history.members.front());
  if (kind_of(history.path / kSamplesName) == PathKind::file)
    page.samples = read_text(history.path / kSamplesName, std::size_t{64} << 20);
  for (const Diagnosis& diagnosis : found) add_findings(page, diagnosis, history.members.size() > 1);
  return page;
}

}  // namespace norma::cli
