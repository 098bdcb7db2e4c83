// Numbers and tables as people read them on a terminal.
#pragma once

#include <string>

#include "norma/train/result.h"

namespace norma::cli {

std::string with_units(double number);      // 12.3k, 4.56M
std::string bytes_text(double bytes);       // 45.0 MiB
std::string duration_text(double seconds);  // 1:05, 2:03:04

// The members of a run, one per line.
std::string outcome_table(const RunResult& result);

}  // namespace norma::cli
