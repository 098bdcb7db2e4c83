// The verbs of the command line, one thin file each.
#pragma once

#include <CLI/CLI.hpp>

#include "norma/models/model.h"

namespace norma::cli {

// Each adds its subcommand and runs through its callback. User mistakes leave as norma::Error.
void add_bench(CLI::App& app);
void add_check(CLI::App& app);
void add_compare(CLI::App& app, int& exit_code);
void add_diagnose(CLI::App& app, int& exit_code);
void add_generate(CLI::App& app);
void add_inspect(CLI::App& app);
void add_plan(CLI::App& app);
void add_runs(CLI::App& app, int& exit_code);
void add_schemes(CLI::App& app);
void add_sweep(CLI::App& app, int& exit_code);
void add_study(CLI::App& app, int& exit_code);
void add_train(CLI::App& app, int& exit_code);

// --schemes-dir, for every verb that takes a scheme or reads a model that was trained with one.
void add_schemes_dir(CLI::App& verb, SchemeLibrary& schemes);
// --device, for the verbs that take keys of the configuration; it is short for --train.device.
void add_device(CLI::App& verb);
std::vector<std::string> overrides_of(const CLI::App& verb);  // the keys that were given, --device among them
// --family, for the verbs that build a model without a configuration.
void add_family(CLI::App& verb, Family& family);

}  // namespace norma::cli
