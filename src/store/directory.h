// Directories: what is inside, and bringing changes of their entries to disk.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace norma {

std::vector<std::string> names_in(const std::filesystem::path& directory);  // sorted; throws Error

// 0 or an errno. Some file systems cannot sync a directory and say so; they are taken at their word.
int sync_directory(const std::filesystem::path& directory);

}  // namespace norma
