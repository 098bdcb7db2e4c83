#include "cli/overrides.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "norma/core/error.h"

namespace norma::cli {

void apply_overrides(RunConfig& config, const std::vector<std::string>& arguments, const SchemeLibrary& schemes) {
  std::vector<std::string> assignments;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!argument.starts_with("--") || argument.find('.') == std::string::npos)
      fail("'{}' is not an option; expected a key of the configuration such as --train.lr=3e-4", argument);
    std::string assignment = argument.substr(2);
    if (assignment.find('=') == std::string::npos) {
      if (i + 1 == arguments.size()) fail("{} has no value; expected {}=VALUE", argument, argument);
      assignment += "=" + arguments[++i];
    }
    assignments.push_back(std::move(assignment));
  }
  // The family first: it says what the others may be.
  std::ranges::stable_partition(assignments, [](const std::string& one) { return one.starts_with("model.family="); });
  for (const std::string& assignment : assignments) override_config(config, assignment, schemes);
}

const std::string& config_file(const std::string& given, const SchemeLibrary& schemes) {
  std::error_code failed;
  if (given.ends_with(".toml") || std::filesystem::exists(given, failed)) return given;
  bool is_scheme = true;
  try {
    schemes.find(given);
  } catch (const Error&) {
    is_scheme = false;
  }
  if (is_scheme)
    fail("there is no file '{0}'; a scheme is given with its option: --scheme {1}{0}{1}", given,
         given.find_first_of(" ()*") == std::string::npos ? "" : "\"");
  return given;
}

std::vector<std::pair<std::string, std::int64_t>> parse_sizes(const std::string& list) {
  constexpr std::int64_t kLargestSize = 1 << 20;
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string part = list.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    std::int64_t size = 0;
    const char* const last = part.data() + part.size();
    const bool whole = equals != std::string::npos && equals > 0 &&
                       std::from_chars(part.data() + equals + 1, last, size).ptr == last && size >= 1;
    if (!whole || size > kLargestSize)
      fail(
          "--sizes: '{}' in '{}' is not a size; expected names and whole numbers from 1 to {}, such as "
          "stages=1,patch=4",
          part, list, kLargestSize);
    sizes.emplace_back(part.substr(0, equals), size);
    begin = end + 1;
  }
  return sizes;
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace norma::cli
