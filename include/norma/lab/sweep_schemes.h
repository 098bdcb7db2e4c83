// The schemes of a sweep, kept in its directory (schemes.json: each name with its TOML) beside what every run keeps of
// its own; and what results.json says about them.
#pragma once

#include <filesystem>
#include <vector>

#include "norma/lab/findings.h"
#include "norma/lab/sweep.h"
#include "norma/train/run_schemes.h"

namespace norma {

// For whoever reads a sweep: its own schemes come first.
SchemeLibrary library_of_sweep(const std::filesystem::path& directory, SchemeLibrary others = {});
// For whoever goes on with it: only where nothing else has the name, so that one that has changed is noticed.
SchemeLibrary library_to_resume_sweep(const std::filesystem::path& directory, SchemeLibrary others = {});

// Throws Error that names the difference when one of these schemes is not what it was when the sweep began.
void require_same_schemes(const std::filesystem::path& directory, const std::vector<SchemeChoice>& schemes);
// And keeps those that are new.
void keep_schemes(const std::filesystem::path& directory, const std::vector<SchemeChoice>& schemes);

// Every scheme of the sweep once, at its largest depth among the runs that have begun, in the order of the grid.
std::vector<SchemeSummary> summarise_schemes(const SweepConfig& config, const std::filesystem::path& directory);

}  // namespace norma
