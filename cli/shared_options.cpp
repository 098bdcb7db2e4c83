#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>

#include "cli/verbs.h"

#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/train/config.h"

namespace norma::cli {

void add_schemes_dir(CLI::App& verb, SchemeLibrary& schemes) {
  verb.add_option_function<std::vector<std::string>>(
          "--schemes-dir",
          [&schemes](const std::vector<std::string>& folders) {
            for (const std::string& folder : folders) schemes.add_folder(folder);
          },
          "Folder of scheme files to read beside the catalogue; NORMA_SCHEMES names more, separated by colons")
      ->type_name(kFolder)
      ->allow_extra_args(false)  // one folder each time it is given: what follows may be a configuration
      ->trigger_on_parse();
}

namespace {

// Study, sweep and inspect have --scheme and --seeds of their own, with several schemes.
bool takes_run_options(const CLI::App& verb) {
  const CLI::Option* scheme = verb.get_option_no_throw("--scheme");
  return scheme != nullptr && scheme->get_expected_max() == 1;
}

// "decoder|encoder|..."
std::string family_words() {
  std::string names;
  for (const FamilyRow& row : families()) names += (names.empty() ? "" : "|") + std::string(row.name);
  return names;
}

// "--lr", "--budget", ...
std::vector<std::string> long_options(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Named before the values of misread options are taken for something else.
void check_is_key(const CLI::App& verb, const std::string& argument) {
  if (!argument.starts_with("--") || argument.find('.') != std::string::npos) return;
  const std::string name = argument.substr(2, argument.find('=') - 2);
  for (const ConfigKey& key : config_keys(RunConfig())) {
    if (key.name.substr(key.name.rfind('.') + 1) == name)
      fail("'{}' is not an option; write --{}=VALUE", argument, key.name);
  }
  if (const CLI::Option* option = verb.get_option_no_throw(name); option != nullptr && option->get_positional())
    fail("'--{}' is not an option; write the {} by itself, as in norma {} {}", name, name, verb.get_name(),
         name + (name == "config" ? ".toml" : ""));
  const std::string given = argument.substr(0, argument.find('='));
  fail("'{}' is not an option{}; expected a key of the configuration such as --train.lr=3e-4", argument,
       did_you_mean(given, long_options(verb)));
}

}  // namespace

void add_device(CLI::App& verb) {
  verb.add_option("--device", "Where models run; auto takes a GPU where there is one")->type_name("auto|cpu|cuda");
}

void add_model_family(CLI::App& verb) {
  verb.add_option("--family", "What kind of model; short for --model.family")->type_name(family_words());
}

void add_run_options(CLI::App& verb) {
  verb.add_option("--scheme,--schemes", "Name, file or formula; short for --model.scheme")->type_name(kScheme);
  const std::string seeds = std::string("Members side by side, one for each seed. ") + kSeedsHelp;
  verb.add_option("--seeds", seeds)->type_name(kList);
}

void add_trained_options(CLI::App& verb, int& member, std::int64_t& threads, std::string& device) {
  verb.add_option("--member", member, "Of a run with several, counted from 0")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 20));
  verb.add_option("--threads", threads, "0: as in the run")->capture_default_str()->check(CLI::Range(0, kMostThreads));
  verb.add_option("--device", device, "Where it runs; without it as in the run")->type_name("auto|cpu|cuda");
}

void take_keys(CLI::App& verb, const std::string& example) {
  verb.allow_extras();
  verb.footer(example);
}

std::vector<std::string> overrides_of(const CLI::App& verb) {
  std::vector<std::string> keys = verb.remaining();
  for (const std::string& key : keys) check_is_key(verb, key);
  const auto add = [&](const char* option, const std::function<void(const std::string&)>& use) {
    const CLI::Option* found = verb.get_option_no_throw(option);
    if (found != nullptr && found->count() > 0) use(found->as<std::string>());
  };
  add("--family", [&](const std::string& family) {  // first: what follows may be of this family alone
    for (const std::string& key : keys) {
      if (key.starts_with("--model.family")) fail("--family {} and {} were given; expected one of them", family, key);
    }
    keys.insert(keys.begin(), "--model.family=" + family);
  });
  add("--device", [&](const std::string& device) { keys.push_back("--train.device=" + device); });
  if (!takes_run_options(verb)) return keys;
  add("--scheme", [&](const std::string& scheme) { keys.push_back("--model.scheme=" + scheme); });
  add("--seeds", [&](const std::string& text) {
    const std::vector<std::int64_t> seeds = parse_seeds(text);
    const std::string list = fmt::format("[{}]", fmt::join(seeds, ","));
    for (const char* key : {"seed", "data_seed"}) {
      keys.push_back(seeds.size() == 1 ? fmt::format("--train.{}={}", key, seeds[0])
                                       : fmt::format("--members.{}={}", key, list));
    }
  });
  return keys;
}

CLI::Option* add_schemes_option(CLI::App& verb, std::vector<std::string>& schemes, const std::string& help) {
  return verb.add_option("schemes,--schemes,--scheme", schemes, help)->expected(1, -1)->type_name(kScheme);
}

std::vector<std::string> separate_schemes(const std::vector<std::string>& words, const SchemeLibrary& library) {
  const std::vector<SchemeEntry> known = library.all();
  const auto is_name = [&](const std::string& word) {
    return std::any_of(known.begin(), known.end(), [&](const SchemeEntry& entry) { return entry.name == word; });
  };
  std::vector<std::string> schemes;
  for (const std::string& word : words) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= word.size();) {
      const std::size_t end = std::min(word.find(',', begin), word.size());
      parts.push_back(word.substr(begin, end - begin));
      begin = end + 1;
    }
    if (std::all_of(parts.begin(), parts.end(), is_name)) {
      schemes.insert(schemes.end(), parts.begin(), parts.end());
    } else {
      schemes.push_back(word);
    }
  }
  return schemes;
}

std::vector<std::int64_t> parse_seeds(const std::string& text) {
  constexpr std::int64_t kMost = 1000;
  const auto mistake = [&] {
    fail("--seeds: '{}' was given; expected how many, such as 5, or which, such as 3,7,9", text);
  };
  std::vector<std::int64_t> seeds;
  const bool listed = text.find(',') != std::string::npos;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::int64_t seed = -1;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, seed);
    if (error != std::errc() || stop != text.data() + end || seed < 0) mistake();
    if (std::find(seeds.begin(), seeds.end(), seed) != seeds.end()) fail("--seeds: {} is given twice", seed);
    seeds.push_back(seed);
    begin = end + 1;
  }
  if (seeds.empty() || (!listed && (seeds[0] < 1 || seeds[0] > kMost))) mistake();
  if (listed) return seeds;
  std::vector<std::int64_t> counted(static_cast<std::size_t>(seeds[0]));
  std::iota(counted.begin(), counted.end(), std::int64_t{1});
  return counted;
}

void add_family(CLI::App& verb, Family& family) {
  verb.add_option_function<std::string>(
          "--family", [&family](const std::string& name) { family = Family(name); }, "What kind of model (decoder)")
      ->type_name(family_words());
}

}  // namespace norma::cli
