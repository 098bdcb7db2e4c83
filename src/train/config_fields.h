// The keys of a run's configuration, each bound to the value it sets. toml++ stays inside this folder.
#pragma once

#include <toml++/toml.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "norma/train/config.h"

namespace norma {

struct ConfigField {
  std::string key;  // "train.lr"
  std::string help;
  std::function<void(const toml::node&)> read;  // throws Error with what was given and what was expected
  std::function<std::string()> write;           // as TOML
  std::string unless = {};                      // the value that is not worth a line; empty: each is
  // For a table whose names are free: one entry, and all of them.
  std::function<void(const std::string& name, const toml::node&)> read_entry = {};
  std::function<std::vector<std::pair<std::string, std::string>>()> entries = {};
};

// In the order in which they are printed. The fields point into `config`; schemes are resolved by a copy of `schemes`.
std::vector<ConfigField> config_fields(RunConfig& config, const SchemeLibrary& schemes = {});

}  // namespace norma
