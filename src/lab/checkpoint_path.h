// The checkpoint that a path means: a file itself, or the newest one of a run's directory.
#pragma once

#include <filesystem>

namespace norma {

std::filesystem::path checkpoint_path(const std::filesystem::path& checkpoint_or_run);

}  // namespace norma
