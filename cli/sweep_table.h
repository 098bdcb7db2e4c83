// What a sweep found, as tables and maps for a terminal.
#pragma once

#include <string>

#include "norma/lab/sweep_results.h"

namespace norma::cli {

// One line for each scheme and depth, then the stability maps.
std::string sweep_tables(const Outcomes& outcomes);

}  // namespace norma::cli
