// results.json: what inspect, sweep and study publish, as values. docs/results.md says what each means and
// docs/results.schema.json which types they have; the report is drawn from it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "norma/lab/course.h"
#include "norma/lab/findings.h"
#include "norma/lab/sweep_results.h"
#include "norma/lab/verdict.h"
#include "norma/store/environment.h"

namespace norma {

enum class ResultsKind { inspect, sweep, study };

inline constexpr Word<ResultsKind> kResultsKindWords[] = {
    {"inspect", ResultsKind::inspect}, {"sweep", ResultsKind::sweep}, {"study", ResultsKind::study}};
constexpr std::span<const Word<ResultsKind>> words_for(ResultsKind) { return kResultsKindWords; }

struct TaskFacts {
  std::string name;
  std::string description = {};                      // empty: left out
  std::optional<double> optimum = {}, unigram = {};  // none: left out
  std::string unit = {};                             // of losses; empty: nats
};

// Which parts there are follows from the kind; what a part does not need of a type (the schedule of a run, the runs
// behind a best setting) is not published and has its default after reading.
struct Results {
  std::string norma;  // the version that made them
  ResultsKind kind = ResultsKind::inspect;
  std::string created;  // UTC
  double seconds = 0;
  std::string command, config;  // config: TOML
  std::optional<Environment> environment = {};
  std::optional<TaskFacts> task = {};
  std::vector<SchemeSummary> schemes = {};
  std::vector<std::string> notes = {};
  // Inspections and studies.
  std::vector<Analysis> analyses = {};
  std::vector<DepthFinding> depth_use = {};
  // Sweeps, and studies that trained.
  std::vector<RunOutcome> runs = {};
  std::vector<StabilityMap> maps = {};
  std::vector<Tuned> tuned = {};
  // Sweeps.
  std::vector<RampLimit> ramps = {};
  std::vector<DepthEfficiency> depth_efficiency = {};
  // Studies.
  std::vector<ExtraRates> extra_rates = {};
  std::optional<Course> course = {};
  std::vector<Comparison> comparisons = {};
  std::vector<Verdict> verdicts = {};
  Advice advice = {};
};

// Of this version, made now.
Results new_results(ResultsKind kind);
// How much larger the share of right answers of `a` is than that of `b`; none where they were not compared.
std::optional<Estimate> more_right(const Results& results, const std::string& a, const std::string& b);

void add_findings(Results& results, Findings findings);
// The runs and what they say together; `sensitivity_rates` as in sensitivity().
void add_outcomes(Results& results, const Outcomes& outcomes, const std::vector<double>& sensitivity_rates = {});
// The bounds of a task where all runs share them.
TaskFacts task_of(const Outcomes& outcomes, const std::string& name);

std::string write_results(const Results& results);
// Throws Error that begins with `file` and names the field that is not as it should be.
Results read_results(std::string_view json, std::string_view file);

// Whether the loss of a tuned setting may stand beside those of other schemes: where a study had a final, losses of
// short runs may not.
bool is_comparable(const Results& results, const Tuned& tuned);

}  // namespace norma
