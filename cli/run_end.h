// What is made of work when it has ended: words about a run that failed, and a page to read. Nothing here can spoil
// what was done: what goes wrong is a warning.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "norma/schemes/library.h"

namespace norma::cli {

// Writes what `make` makes, whole or not at all. False, with a warning, where that fails.
bool write_page(const std::filesystem::path& path, const std::function<std::string()>& make);

// Why members failed and what to try first; empty where all are well. Empty as well when its files cannot be read.
std::string words_after_failure(const std::filesystem::path& run, const SchemeLibrary& schemes);

}  // namespace norma::cli
