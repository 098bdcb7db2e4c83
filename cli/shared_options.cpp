#include "cli/verbs.h"

#include "norma/core/error.h"
#include "norma/train/config.h"

namespace norma::cli {

void add_schemes_dir(CLI::App& verb, SchemeLibrary& schemes) {
  verb.add_option_function<std::vector<std::string>>(
          "--schemes-dir",
          [&schemes](const std::vector<std::string>& folders) {
            for (const std::string& folder : folders) schemes.add_folder(folder);
          },
          "Folder of scheme files to read beside the catalogue; NORMA_SCHEMES names more, separated by colons")
      ->allow_extra_args(false)  // one folder each time it is given: what follows may be a configuration
      ->trigger_on_parse();
}

namespace {

// Named before the values of misread options are taken for something else.
void check_is_key(const std::string& argument) {
  if (!argument.starts_with("--") || argument.find('.') != std::string::npos) return;
  const std::string name = argument.substr(2, argument.find('=') - 2);
  for (const ConfigKey& key : config_keys(RunConfig())) {
    if (key.name.substr(key.name.rfind('.') + 1) == name)
      fail("'{}' is not an option; write --{}=VALUE", argument, key.name);
  }
  fail("'{}' is not an option; expected a key of the configuration such as --train.lr=3e-4", argument);
}

}  // namespace

void add_device(CLI::App& verb) {
  verb.add_option("--device", "auto, cpu or cuda: where models run; auto takes a GPU where there is one");
}

std::vector<std::string> overrides_of(const CLI::App& verb) {
  std::vector<std::string> keys = verb.remaining();
  for (const std::string& key : keys) check_is_key(key);
  if (verb.count("--device") > 0) keys.push_back("--train.device=" + verb["--device"]->as<std::string>());
  return keys;
}

void add_family(CLI::App& verb, Family& family) {
  verb.add_option_function<std::string>(
      "--family", [&family](const std::string& name) { family = Family(name); }, family_names());
}

}  // namespace norma::cli
