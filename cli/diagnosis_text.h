// A diagnosis as people read it on a terminal.
#pragma once

#include <string>

#include "norma/lab/diagnose.h"

namespace norma::cli {

// What is wrong, the evidence, and what to try.
std::string diagnosis_text(const Diagnosis& diagnosis, bool name_member);
// The same in two lines, for the end of a run.
std::string diagnosis_in_short(const Diagnosis& diagnosis, bool name_member);

std::string trials_text(const std::vector<TrialResult>& results, const std::string& conclusion);

}  // namespace norma::cli
