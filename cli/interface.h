// The command line as a table: every verb with its options, read off the parser, so that help, shell completion and the
// manual can say nothing else than what the parser takes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace norma::cli {

struct OptionText {
  std::vector<std::string> names;    // "--layers", "--depth"; of a positional its name alone
  std::string value;                 // what it takes: a kind of verbs.h; empty: nothing, a flag
  std::vector<std::string> choices;  // where its value is one of these
  std::string help, usual;           // usual: the default value, where it says so
  bool positional = false, required = false, many = false;
};

struct VerbText {
  std::string name, about, footer;
  std::vector<OptionText> options;  // positionals first
  bool takes_keys = false;          // any key of the configuration
};

VerbText describe_verb(const CLI::App& verb);
std::vector<VerbText> describe_verbs(const CLI::App& app);

// "norma train [config] [options] [--table.key=value ...]"
std::string usage_of(const VerbText& verb);
// "--layers,--depth N"
std::string heading_of(const OptionText& option);

// What `norma --help` and `norma VERB --help` print.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// Shell scripts that complete verbs, options, keys, schemes and files.
std::string bash_completion(const std::vector<VerbText>& verbs);
std::string zsh_completion(const std::vector<VerbText>& verbs);
std::string fish_completion(const std::vector<VerbText>& verbs);

// norma(1), as troff.
std::string manual(const std::vector<VerbText>& verbs);

}  // namespace norma::cli
