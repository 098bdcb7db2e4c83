// The schemes of a sweep, kept in its directory (schemes.json: each name with its TOML) beside what every run keeps of
// its own; and what results.json says about them.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "norma/lab/results.h"
#include "norma/lab/sweep.h"
#include "norma/train/kept_scheme.h"

namespace norma {

using KeptSchemes = std::vector<std::shared_ptr<const KeptScheme>>;

// For whoever reads a sweep: its own schemes count as long as the result lives. To be called before the sweep's
// configuration is read, which looks schemes up.
KeptSchemes schemes_of_sweep(const std::filesystem::path& directory);
// For whoever goes on with it: only those whose names nothing else has, so that one that has changed is noticed.
KeptSchemes schemes_to_resume(const std::filesystem::path& directory);

// Throws Error that names the difference when one of these schemes is not what it was when the sweep began.
void require_same_schemes(const std::filesystem::path& directory, const std::vector<std::string>& names);
// And keeps those that are new.
void keep_schemes(const std::filesystem::path& directory, const std::vector<std::string>& names);

// Every scheme of the sweep once, at its largest depth among the runs that have begun, in the order of the grid.
std::vector<SchemeSummary> summarise_schemes(const SweepConfig& config, const std::filesystem::path& directory);

}  // namespace norma
