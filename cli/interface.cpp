#include "cli/interface.h"

#include <fmt/format.h>

#include "cli/verbs.h"

namespace norma::cli {
namespace {

std::vector<std::string> split_at(const std::string& text, char mark) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(mark, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// The parser puts what its checks have to say behind a colon.
std::string value_of(const CLI::Option& option) {
  if (option.get_type_size() == 0 || option.get_items_expected_max() == 0) return "";
  const std::string name = split_at(option.get_type_name(), ':').front();
  if (name == "INT" || name == "UINT" || name == "FLOAT") return kNumber;
  return name.empty() ? kText : name;
}

// One that may be named or not is two.
OptionText describe_option(const CLI::Option& option, bool positional) {
  OptionText text;
  text.positional = positional;
  if (text.positional) {
    text.names = {option.get_name(true, false)};
  } else {
    for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  }
  text.value = value_of(option);
  if (text.value.find('|') != std::string::npos) text.choices = split_at(text.value, '|');
  text.help = option.get_description();
  text.usual = option.get_default_str();
  text.required = option.get_required();
  text.many = option.get_expected_max() >= CLI::detail::expected_max_vector_size;
  return text;
}

}  // namespace

VerbText describe_verb(const CLI::App& verb) {
  VerbText text{.name = verb.get_name(), .about = verb.get_description(), .footer = verb.get_footer(), .options = {}};
  text.takes_keys = verb.get_allow_extras();
  for (const bool positional : {true, false}) {
    for (const CLI::Option* option : verb.get_options()) {
      const bool fits = positional ? option->get_positional() : option->nonpositional();
      if (fits && !option->get_group().empty()) text.options.push_back(describe_option(*option, positional));
    }
  }
  return text;
}

std::vector<VerbText> describe_verbs(const CLI::App& app) {
  std::vector<VerbText> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(describe_verb(*verb));
  return verbs;
}

std::string usage_of(const VerbText& verb) {
  std::string text = "norma " + verb.name;
  for (const OptionText& option : verb.options) {
    if (!option.positional) continue;
    const std::string name = option.names.front() + (option.many ? "..." : "");
    text += option.required ? " " + name : " [" + name + "]";
  }
  return text + " [options]" + (verb.takes_keys ? " [--table.key=value ...]" : "");
}

std::string heading_of(const OptionText& option) {
  std::string text = fmt::format("{}", fmt::join(option.names, ","));
  if (option.positional) return text + (option.many ? "..." : "");
  if (!option.value.empty()) text += " " + option.value;
  return text + (option.many ? " ..." : "");
}

}  // namespace norma::cli
