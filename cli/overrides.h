// Configuration keys given on the command line, and the command line itself.
#pragma once

#include <string>
#include <vector>

#include "norma/train/config.h"

namespace norma::cli {

// "--train.lr=3e-4", or "--train.lr" followed by "3e-4". Throws Error for
// anything else.
void apply_overrides(RunConfig& config, const std::vector<std::string>& arguments, const SchemeLibrary& schemes);

// How this process was called.
std::vector<std::string> command_line();

}  // namespace norma::cli
