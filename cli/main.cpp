// norma: one program, one verb per file. Exit codes: 0 done, 2 a mistake in what was given, 130 stopped on request, 1 a
// mistake in norma.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "cli/interface.h"
#include "cli/output.h"
#include "cli/stop.h"
#include "cli/verbs.h"
#include "norma/core/arena.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/version.h"

namespace {

using norma::cli::note;

// An unknown verb is named, with the nearest known one, before anything else is read.
void check_verb(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  if (std::find(verbs.begin(), verbs.end(), argv[1]) != verbs.end()) return;
  norma::fail("there is no verb '{}'{}; norma --help lists them", argv[1], norma::did_you_mean(argv[1], verbs));
}

// What the parser takes, last first. "--train.lr 3e-4" is one argument, "--train.lr=3e-4": the parser knows no such
// option and would take the value for something else.
std::vector<std::string> arguments(int argc, char** argv) {
  std::vector<std::string> all;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    const bool key = argument.starts_with("--") && argument.find('.') != std::string::npos &&
                     argument.find('=') == std::string::npos;
    if (key && i + 1 < argc && argv[i + 1][0] != '-') argument += std::string("=") + argv[++i];
    all.push_back(std::move(argument));
  }
  std::reverse(all.begin(), all.end());
  return all;
}

// What the parser says of an option that a verb does not have, or of a value that is no number, in plain words.
std::string words_of(const CLI::App& app, const CLI::Error& error) {
  const std::string said = error.what(), unread = "Could not convert: ";
  const auto verbs = app.get_subcommands();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !verbs.empty()) {
    std::vector<std::string> extras = verbs[0]->remaining();
    if (extras.empty()) {  // the parser has let go of them
      std::istringstream words(said.substr(said.find(": ") + 1));
      for (std::string word; words >> word;) extras.insert(extras.begin(), word);
    }
    const auto option = std::ranges::find_if(extras, [](const std::string& one) { return one.starts_with("-"); });
    if (option == extras.end())
      return fmt::format("norma {} takes no '{}'; --help says what it takes", verbs[0]->get_name(), extras[0]);
    std::vector<std::string> names;
    for (const CLI::Option* known : verbs[0]->get_options()) {
      for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
    }
    return fmt::format("'{}' is not an option of norma {}{}; --help says what it takes", *option, verbs[0]->get_name(),
                       norma::did_you_mean(option->substr(0, option->find('=')), names));
  }
  if (const std::size_t equals = said.find(" = "); said.starts_with(unread) && equals != std::string::npos)
    return fmt::format("{}: '{}' was given; expected a number", said.substr(unread.size(), equals - unread.size()),
                       said.substr(equals + 3));
  return CLI::FailureMessage::simple(&app, error);
}

// Also for what is thrown where nobody can catch it, as in a thread of the engine.
int exit_code_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const norma::cli::Stopped&) {
    return norma::cli::kStoppedCode;
  } catch (const norma::Error& error) {
    note("norma: {}\n", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    note(
        "norma: out of memory, with {} available here; a smaller batch, width or depth, fewer members or fewer threads "
        "take less, and norma plan says how much a run takes\n",
        norma::describe_bytes(norma::available_memory()));
    return 2;
  } catch (const std::system_error& error) {  // what the operating system refuses is not a mistake of ours
    note("norma: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    note("norma: internal error: {}\n", error.what());
  } catch (...) {
    note("norma: internal error\n");
  }
  return 1;
}

[[noreturn]] void end_at_once() {
  const std::exception_ptr thrown = std::current_exception();
  std::_Exit(thrown == nullptr ? 1 : exit_code_of(thrown));
}

int run(int argc, char** argv) {
  CLI::App app("norma: training engine and stability laboratory for residual networks");
  app.set_version_flag("--version", std::string("norma ") + NORMA_VERSION);
  app.require_subcommand(1);
  app.formatter(norma::cli::help_formatter());
  app.failure_message([](const CLI::App* program, const CLI::Error& error) {
    std::string words = "norma: " + words_of(*program, error);
    return words.ends_with('\n') ? words : words + "\n";
  });
  int exit_code = 0;
  try {
    norma::cli::add_verbs(app, exit_code);
    if (argc < 2) {
      norma::cli::print("{}", app.help());
      return 0;
    }
    check_verb(app, argc, argv);
    app.parse(arguments(argc, argv));
    return exit_code;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (...) {
    return exit_code_of(std::current_exception());
  }
}

}  // namespace

int main(int argc, char** argv) {
  norma::cli::prepare_streams();
  norma::cli::report_lost_files();
  std::set_terminate(end_at_once);
  norma::cli::stop_on_signals();
  return norma::cli::finish_streams(run(argc, argv));
}
