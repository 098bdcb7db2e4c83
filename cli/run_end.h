// What is made of a run when it has ended: words about one that failed.
#pragma once

#include <filesystem>
#include <string>

#include "norma/schemes/library.h"

namespace norma::cli {

// Why members failed and what to try first; empty where all are well. Nothing that goes wrong here is an error of the
// run: then it has no words.
std::string words_after_failure(const std::filesystem::path& run, const SchemeLibrary& schemes);

}  // namespace norma::cli
