// Keys of the configuration as axes of a sweep.
#pragma once

#include <string>

#include "norma/lab/sweep.h"

namespace norma {

// The value of a key as the configuration prints it.
std::string config_value(const RunConfig& config, const std::string& key);

// `value` as the configuration prints it once it is set, so that 1e-3 and 0.001 are one. Throws Error when it does not
// fit the key.
std::string normal_value(const SweepConfig& sweep, const std::string& key, const std::string& value);

}  // namespace norma
