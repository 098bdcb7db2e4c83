// The verbs of the command line, one thin file each, and the options that several of them share. Help, shell completion
// and the manual are all made from what is declared here and there (interface.h).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "norma/models/model.h"

namespace norma::cli {

// Adds its subcommand and runs through its callback. User mistakes leave as norma::Error; `exit_code` is set where it
// is not 0.
using AddVerb = void (*)(CLI::App& app, int& exit_code);

void add_bench(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_compare(CLI::App& app, int& exit_code);
void add_completion(CLI::App& app, int& exit_code);
void add_diagnose(CLI::App& app, int& exit_code);
void add_generate(CLI::App& app, int& exit_code);
void add_init(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_man(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_plot(CLI::App& app, int& exit_code);
void add_predict(CLI::App& app, int& exit_code);
void add_runs(CLI::App& app, int& exit_code);
void add_sample(CLI::App& app, int& exit_code);
void add_schemes(CLI::App& app, int& exit_code);
void add_study(CLI::App& app, int& exit_code);
void add_sweep(CLI::App& app, int& exit_code);
void add_train(CLI::App& app, int& exit_code);

// All of them, in the order in which they are listed. A new verb is one line of the table in verbs.cpp.
void add_verbs(CLI::App& app, int& exit_code);

// What kind of value an option takes: its type_name(). Help shows it, and shells complete by it. A choice is written as
// its words with "|" between them.
inline constexpr const char* kFile = "FILE";
inline constexpr const char* kFolder = "DIR";
inline constexpr const char* kRun = "RUN";  // a run's directory or a checkpoint
inline constexpr const char* kScheme = "SCHEME";
inline constexpr const char* kNumber = "N";
inline constexpr const char* kText = "TEXT";
inline constexpr const char* kList = "LIST";  // between commas

// What seeds and threads may be, as in the configuration.
inline constexpr int kMostThreads = 4096;
inline constexpr std::int64_t kLargestSeed = 1'000'000'000'000;

// --schemes-dir, for every verb that takes a scheme or reads a model that was trained with one.
void add_schemes_dir(CLI::App& verb, SchemeLibrary& schemes);
// Schemes as words behind the verb, or behind --scheme or --schemes: all mean the same.
CLI::Option* add_schemes_option(CLI::App& verb, std::vector<std::string>& schemes, const std::string& help);
// "pre,post" is two, where both are names of schemes; a formula may have commas of its own.
std::vector<std::string> separate_schemes(const std::vector<std::string>& words, const SchemeLibrary& library);
// "5": seeds 1 to 5; "3,7": these two; "5,": the seed 5 alone. Throws Error.
std::vector<std::int64_t> parse_seeds(const std::string& text);
inline constexpr const char* kSeedsHelp = "How many, counted from 1, or which: 5, or 3,7,9";
// --device, for the verbs that take keys of the configuration; it is short for --train.device.
void add_device(CLI::App& verb);
// --scheme and --seeds, for those that build one run; short for --model.scheme, --members.seed and --members.data_seed.
void add_run_options(CLI::App& verb);
// --member, --threads and --device, for those that read a trained model.
void add_trained_options(CLI::App& verb, int& member, std::int64_t& threads, std::string& device);
// Whether any key of the configuration may be given: --train.lr=3e-4. `example` is the last line of the verb's help.
void take_keys(CLI::App& verb, const std::string& example);
std::vector<std::string> overrides_of(const CLI::App& verb);  // the keys that were given, short ones among them
// --family, for the same verbs; it is short for --model.family.
void add_model_family(CLI::App& verb);
// --family, for the verbs that build a model without a configuration.
void add_family(CLI::App& verb, Family& family);

}  // namespace norma::cli
