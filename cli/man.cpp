// norma man: the manual page, made from the same table as --help.
#include <fmt/format.h>

#include "cli/interface.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "norma/train/config.h"
#include "norma/version.h"

namespace norma::cli {
namespace {

// Text as troff takes it: hyphens that can be copied, no line that reads as a request.
std::string roff(std::string_view text) {
  std::string result;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    line_begins = c == '\n';
  }
  return result;
}

std::string entry(const std::string& heading, const std::string& text) {
  return fmt::format(".TP\n.B {}\n{}\n", roff(heading), roff(text));
}

std::string verb_part(const VerbText& verb) {
  std::string text = fmt::format(".SS {}\n{}.\n.PP\n.B {}\n", roff(verb.name), roff(verb.about), roff(usage_of(verb)));
  for (const OptionText& option : verb.options) {
    if (option.names.back() == "--help") continue;
    text += entry(heading_of(option),
                  option.usual.empty() ? option.help : fmt::format("{} ({})", option.help, option.usual));
  }
  return text + (verb.footer.empty() ? "" : ".PP\n" + roff(verb.footer) + "\n");
}

std::string keys_part() {
  std::string text, table;
  for (const ConfigKey& key : config_keys(RunConfig())) {
    if (key.table != table) text += fmt::format(".SS [{}]\n", key.table);
    table = key.table;
    text += entry(fmt::format("{} = {}", key.name, key.value), key.help);
  }
  return text;
}

}  // namespace

std::string manual(const std::vector<VerbText>& verbs) {
  std::string text = fmt::format(".TH NORMA 1 \"\" \"norma {}\" \"User Commands\"\n", NORMA_VERSION);
  text +=
      ".SH NAME\nnorma \\- training engine and stability laboratory for residual networks\n"
      ".SH SYNOPSIS\n.B norma\n.I verb\n[options]\n"
      ".SH DESCRIPTION\nA residual block is one line of math, such as norm(x + f(x)). norma predicts how it behaves at "
      "depth, trains it, shows what happened and says which one to use.\n"
      ".PP\nResults go to standard output, progress and warnings to standard error. Ctrl\\-C stops a verb and keeps "
      "what has been done; the same command goes on from there.\n.SH VERBS\n";
  for (const VerbText& verb : verbs) text += verb_part(verb);
  text +=
      ".SH CONFIGURATION\nThe keys of a configuration file with their defaults. On the command line each is given as "
      "\\-\\-table.key=value.\n" +
      keys_part();
  text += ".SH EXIT STATUS\n" + entry("0", "Done. A model that diverged is a result, not an error.") +
          entry("1", "A mistake in norma.") + entry("2", "A mistake in what was given.") +
          entry("130", "Stopped on request.");
  text += ".SH ENVIRONMENT\n" + entry("NORMA_SCHEMES", "Folders of scheme files, separated by colons.") +
          entry("COLUMNS", "How wide tables and texts may be.");
  return text;
}

void add_man(CLI::App& app, int&) {
  CLI::App* verb = app.add_subcommand("man", "Print the manual page");
  verb->footer("To read it: norma man | man -l -");
  verb->callback([&app] { write_out(manual(describe_verbs(app))); });
}

}  // namespace norma::cli
