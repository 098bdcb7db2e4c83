// The results of a study: what its parts found, the course it took, the final comparison, verdicts and advice.
#pragma once

#include <optional>
#include <vector>

#include "lab/study/planner.h"
#include "lab/study/play.h"
#include "lab/study/verdict.h"
#include "norma/lab/results.h"
#include "norma/lab/study.h"

namespace norma {

struct StudyFindings {
  const StudyConfig& config;
  const Findings& findings;
  const Outcomes& map;                            // runs of the map
  const std::vector<std::vector<double>>& grids;  // rates of each scheme there
  const std::vector<SchemeEvidence>& evidence;
  const RoundPlayer& rounds;
  StudyScale scale;
};

// Adds to verdicts and advice what a loss comes to in right answers, and how many of those need no model.
void say_accuracy(Results& results, std::optional<double> most_frequent);

// The loss ranks, but whoever wants right answers must hear that another scheme has clearly more of them than the
// advised one, paired over seeds and held-out records: adds that to the advice.
void say_more_accurate(Results& results);

// Adds them to results that say where they come from.
Results describe_study(Results results, const StudyFindings& study);

}  // namespace norma
