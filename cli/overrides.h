// Configuration keys given on the command line, and the command line itself.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "norma/train/config.h"

namespace norma::cli {

// "--train.lr=3e-4", or "--train.lr" followed by "3e-4". Throws Error for
// anything else.
void apply_overrides(RunConfig& config, const std::vector<std::string>& arguments, const SchemeLibrary& schemes);

// The file of a configuration as it was given. Throws Error for a scheme in its place, with what to write.
const std::string& config_file(const std::string& given, const SchemeLibrary& schemes);

// "stages=1,image_height=32": sizes of a family by name, whole numbers from 1. Throws Error for anything else.
std::vector<std::pair<std::string, std::int64_t>> parse_sizes(const std::string& list);

// How this process was called.
std::vector<std::string> command_line();

}  // namespace norma::cli
