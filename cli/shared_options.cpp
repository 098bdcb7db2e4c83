#include "cli/verbs.h"

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

void add_device(CLI::App& verb) {
  verb.add_option("--device", "auto, cpu or cuda: where models run; auto takes a GPU where there is one");
}

std::vector<std::string> overrides_of(const CLI::App& verb) {
  std::vector<std::string> keys = verb.remaining();
  if (verb.count("--device") > 0) keys.push_back("--train.device=" + verb["--device"]->as<std::string>());
  return keys;
}

void add_family(CLI::App& verb, Family& family) {
  verb.add_option_function<std::string>(
      "--family", [&family](const std::string& name) { family = Family(name); }, family_names());
}

}  // namespace norma::cli
