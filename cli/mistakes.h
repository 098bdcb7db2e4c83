// What is wrong with a command line, in norma's words rather than the parser's.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace norma::cli {

std::string words_of(const CLI::App& app, const CLI::Error& error);

}  // namespace norma::cli
