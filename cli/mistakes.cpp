#include "cli/mistakes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "cli/interface.h"
#include "norma/core/names.h"

namespace norma::cli {
namespace {

using Halves = std::optional<std::pair<std::string, std::string>>;

// What stands before and after the first `mark`; none where there is no mark.
Halves halves(const std::string& text, const std::string& mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) return std::nullopt;
  return std::pair(text.substr(0, at), text.substr(at + mark.size()));
}

// "bash,zsh,fish" as "bash, zsh or fish".
std::string alternatives(std::string list) {
  for (std::size_t at = 0; (at = list.find(',', at)) != std::string::npos; at += 2)
    list.replace(at, 1, list.find(',', at + 1) == std::string::npos ? " or " : ", ");
  return list;
}

std::string surplus(const CLI::App& verb, const std::string& said) {
  std::vector<std::string> extras = verb.remaining();
  if (extras.empty()) {  // the parser has let go of them
    std::istringstream words(said.substr(said.find(": ") + 1));
    for (std::string word; words >> word;) extras.insert(extras.begin(), word);
  }
  const auto option = std::ranges::find_if(extras, [](const std::string& one) { return one.starts_with("-"); });
  if (option == extras.end())
    return fmt::format("norma {} takes no '{}'; --help says what it takes", verb.get_name(), extras[0]);
  std::vector<std::string> names;
  for (const CLI::Option* known : verb.get_options()) {
    for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
  }
  return fmt::format("'{}' is not an option of norma {}{}; --help says what it takes", *option, verb.get_name(),
                     did_you_mean(option->substr(0, option->find('=')), names));
}

// A value that a check of the option refused.
std::string refused_value(const std::string& said) {
  const Halves named = halves(said, ": ");
  if (!named) return said;
  const auto& [option, rest] = *named;
  if (const Halves outside = halves(rest, " not in range ");
      outside && outside->first.starts_with("Value ") && halves(outside->second, " to ")) {
    const bool whole = outside->second.find('.') == std::string::npos;
    const Halves bounds = halves(outside->second, " to ");
    const auto number = [](const std::string& bound) {
      return fmt::format("{:.15g}", std::stod(bound));
    };  // 600.000000
    return fmt::format("{}: '{}' was given; expected a {}number from {} to {}", option, outside->first.substr(6),
                       whole ? "whole " : "", number(bounds->first), number(bounds->second));
  }
  if (const Halves other = halves(rest, " not in {"); other && other->second.ends_with('}')) {
    std::string known = other->second;
    known.pop_back();
    return fmt::format("{}: '{}' was given; expected {}", option, other->first, alternatives(known));
  }
  return said;
}

// An option with more or fewer values than it takes.
std::string miscounted(const std::string& said) {
  if (const Halves many = halves(said, ": At Most 1 required but received "))
    return fmt::format("{} is given {} times; expected once", many->first, many->second);
  const Halves none = halves(said, ": 1 required ");
  if (none && none->second.ends_with(" missing"))
    return fmt::format("{} has no value; expected {}", none->first,
                       none->second.substr(0, none->second.rfind(" missing")));
  return said;
}

}  // namespace

std::string words_of(const CLI::App& app, const CLI::Error& error) {
  const std::string said = error.what(), unread = "Could not convert: ";
  const auto verbs = app.get_subcommands();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !verbs.empty()) return surplus(*verbs[0], said);
  if (const Halves value = halves(said, " = "); said.starts_with(unread) && value) {
    const std::string name = value->first.substr(unread.size());
    const CLI::Option* option = verbs.empty() ? nullptr : verbs[0]->get_option_no_throw(name);
    const bool flag = option != nullptr && option->get_items_expected_max() == 0;
    return fmt::format("{}: '{}' was given; expected {}", name, value->second, flag ? "no value" : "a number");
  }
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) return refused_value(said);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return miscounted(said);
  if (const Halves both = halves(said, " excludes ");
      both && dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr)
    return fmt::format("{} and {} were given; expected one of them", both->first, both->second);
  if (const Halves missing = halves(said, " is required");
      missing && !verbs.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    return fmt::format("{} is missing; expected {}", missing->first, usage_of(describe_verb(*verbs[0])));
  return CLI::FailureMessage::simple(&app, error);
}

}  // namespace norma::cli
