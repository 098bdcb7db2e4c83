// norma init: a commented configuration to begin with, printed from the same table that reads it.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/output.h"
#include "cli/overrides.h"
#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/store/atomic_file.h"
#include "norma/store/folder.h"
#include "norma/train/config.h"

namespace norma::cli {
namespace {

struct InitOptions {
  std::string file = "run.toml";
  bool force = false;
  SchemeLibrary schemes = SchemeLibrary::of_environment();
};

// What nearly every run says for itself; all else is shown with its default, commented out.
const std::set<std::string> kUsual = {"model.scheme", "model.family", "model.layers", "model.width",
                                      "model.heads",  "model.batch",  "model.time",   "data.task",
                                      "train.steps",  "train.lr",     "train.warmup", "train.seed"};

std::set<std::string> keys_to_set(const RunConfig& config) {
  std::set<std::string> keys = kUsual;
  const std::vector<ConfigKey> usual = config_keys(RunConfig());
  for (const ConfigKey& key : config_keys(config)) {
    const auto same = [&](const ConfigKey& one) { return one.name == key.name && one.value == key.value; };
    if (std::none_of(usual.begin(), usual.end(), same)) keys.insert(key.name);
  }
  return keys;
}

std::string commented(const RunConfig& config, const std::string& file) {
  const std::set<std::string> set = keys_to_set(config);
  std::string text = fmt::format(
      "# A run of norma: norma train {}\n"
      "# Lines that begin with # show defaults; remove the # to change one.\n\n",
      file);
  std::string table;
  const std::string all = print_config(config, true);
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\n', begin), all.size());
    const std::string line = all.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with('[')) table = line.substr(1, line.find(']') - 1);
    const bool value = !line.empty() && line.front() != '[' && line.front() != '#';
    const bool shown = value && !set.contains(table + "." + line.substr(0, line.find(" =")));
    text += (shown ? "# " : "") + line + "\n";
  }
  return text;
}

void run_init(const InitOptions& options, const std::vector<std::string>& extras) {
  RunConfig config;
  apply_overrides(config, extras, options.schemes);
  if (options.file == "-") {
    write_out(commented(config, "run.toml"));
    return;
  }
  if (!options.force && kind_of(options.file) != PathKind::nothing)
    fail("'{}' is there already; name another file, or --force to replace it", options.file);
  write_atomically(options.file, commented(config, options.file));
  print("wrote {}; train it with: norma train {}\n", options.file, options.file);
}

}  // namespace

void add_init(CLI::App& app, int&) {
  const auto options = std::make_shared<InitOptions>();
  CLI::App* verb = app.add_subcommand("init", "Write a commented configuration to begin with");
  verb->add_option("file", options->file, "File to write; - prints it")->capture_default_str()->type_name(kFile);
  verb->add_flag("--force", options->force, "Replace the file where there is one");
  add_schemes_dir(*verb, options->schemes);
  add_run_options(*verb);
  add_model_family(*verb);
  add_device(*verb);
  take_keys(*verb, "Any key that the file shall set: --model.scheme=deepnorm --data.path=book.txt");
  verb->callback([options, verb] { run_init(*options, overrides_of(*verb)); });
}

}  // namespace norma::cli
