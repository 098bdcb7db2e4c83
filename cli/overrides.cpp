#include "cli/overrides.h"

#include <fstream>

#include "norma/core/error.h"

namespace norma::cli {

void apply_overrides(RunConfig& config, const std::vector<std::string>& arguments, const SchemeLibrary& schemes) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!argument.starts_with("--") || argument.find('.') == std::string::npos)
      fail("'{}' is not an option; expected a key of the configuration such as --train.lr=3e-4", argument);
    std::string assignment = argument.substr(2);
    if (assignment.find('=') == std::string::npos) {
      if (i + 1 == arguments.size()) fail("{} has no value; expected {}=VALUE", argument, argument);
      assignment += "=" + arguments[++i];
    }
    override_config(config, assignment, schemes);
  }
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace norma::cli
