// results.json of a study: what its parts found, the course it took, the final comparison, verdicts and advice.
#pragma once

#include <string>
#include <vector>

#include "lab/study/planner.h"
#include "lab/study/play.h"
#include "lab/study/verdict.h"
#include "norma/lab/results.h"
#include "norma/lab/study.h"
#include "norma/lab/sweep_results.h"

namespace norma {

struct StudyFindings {
  const StudyConfig& config;
  Provenance provenance;
  const Findings& findings;
  double unigram = 0;
  const Outcomes& map;                            // runs of the map
  const std::vector<std::vector<double>>& grids;  // rates of each scheme there
  const std::vector<SchemeEvidence>& evidence;
  const RoundPlayer& rounds;
  StudyScale scale;
};

std::string describe_study(const StudyFindings& study);

}  // namespace norma
