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

// Of a run that has ended: its page (report.html in its directory), which a run that had ended before keeps as it is,
// and why members failed and what to try first. The words are empty where all are well, and where the run's files
// cannot be read.
enum class PageOfRun { anew, kept };
std::string close_run(const std::filesystem::path& run, const SchemeLibrary& schemes, PageOfRun page);

}  // namespace norma::cli
