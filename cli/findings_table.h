// Findings as aligned text: values by depth, exponents with intervals, and a small plot along the layers.
#pragma once

#include <string>

#include "norma/lab/findings.h"

namespace norma::cli {

std::string findings_table(const Findings& findings);

// One character of eight heights per value, from the smallest to the largest.
std::string sparkline(const std::vector<double>& values, bool log);

}  // namespace norma::cli
