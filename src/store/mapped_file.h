// Small text files of a run.
#pragma once

#include <filesystem>
#include <string>

#include "norma/core/mapped_file.h"

namespace norma {

// A small text file, such as a configuration; throws Error above 64 MiB.
std::string read_text(const std::filesystem::path& path);

}  // namespace norma
