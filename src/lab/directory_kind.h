// Whose directory it is. Runs, sweeps and studies each have theirs, and none begins in another's.
#pragma once

#include <filesystem>

#include "norma/store/folder.h"

namespace norma {

inline constexpr const char *kSweepFile = "sweep.toml", *kStudyFile = "study.toml";

// Throws Error when `path` is no directory for a sweep: the directory of a run or a study, or one with files of
// somebody else. A missing or empty one is, and so is what a sweep leaves that was killed before it had written
// sweep.toml.
void require_sweep_directory(const std::filesystem::path& path);

// The same for a study, beside which other files may lie.
void require_study_directory(const std::filesystem::path& path);

// A directory that holds a sweep already.
bool holds_sweep(const std::filesystem::path& path);
// The same of a study.
bool holds_study(const std::filesystem::path& path);

}  // namespace norma
