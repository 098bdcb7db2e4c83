// What `norma --help` and `norma VERB --help` print: two columns, no wider than the terminal.
#include <fmt/format.h>

#include "cli/interface.h"
#include "cli/terminal.h"

namespace norma::cli {
namespace {

constexpr std::size_t kNameColumn = 26, kPipedColumns = 100;

std::string entry(const std::string& heading, const std::string& text, std::size_t columns) {
  const std::size_t name = std::min(kNameColumn, columns / 3);
  const bool beside = display_width(heading) + 4 <= name;
  std::string lines =
      beside ? fmt::format("  {:<{}}", heading, name - 2) : wrapped(fmt::format("  {}\n", heading), columns, 4);
  const std::string body = wrapped(text, columns - name, 0);
  for (std::size_t begin = 0; begin < body.size();) {
    const std::size_t end = std::min(body.find('\n', begin), body.size());
    const bool first = begin == 0 && beside;
    lines += (first ? "" : std::string(name, ' ')) + body.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return lines;
}

std::string help_of(const OptionText& option) {
  return option.usual.empty() ? option.help : fmt::format("{} ({})", option.help, option.usual);
}

std::string verb_help(const VerbText& verb, std::size_t columns) {
  std::string text = wrapped(fmt::format("{}\nUsage: {}\n", verb.about, usage_of(verb)), columns);
  bool positionals = false, options = false;
  for (const OptionText& option : verb.options) {
    bool& begun = option.positional ? positionals : options;
    if (!begun) text += option.positional ? "\n" : "\nOptions:\n";
    begun = true;
    text += entry(heading_of(option), help_of(option), columns);
  }
  return text + (verb.footer.empty() ? "" : "\n" + wrapped(verb.footer + "\n", columns));
}

std::string program_help(const CLI::App& app, std::size_t columns) {
  std::string text =
      wrapped(fmt::format("{}\nUsage: norma VERB [options]\n\nVerbs:\n", app.get_description()), columns);
  for (const VerbText& verb : describe_verbs(app)) text += entry(verb.name, verb.about, columns);
  text += "\nOptions:\n";
  for (const OptionText& option : describe_verb(app).options) text += entry(heading_of(option), option.help, columns);
  return text + "\n" +
         wrapped("norma VERB --help says what a verb takes; norma man | man -l - is the whole manual.\n", columns);
}

class HelpFormatter final : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    const std::size_t columns = output_columns().value_or(kPipedColumns);
    return app->get_parent() == nullptr ? program_help(*app, columns) : verb_help(describe_verb(*app), columns);
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

}  // namespace norma::cli
