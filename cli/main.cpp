// norma: one program, one verb per file. Exit codes: 0 done, 2 a mistake in what was given, 130 stopped on request, 1 a
// mistake in norma.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "cli/interface.h"
#include "cli/mistakes.h"
#include "cli/output.h"
#include "cli/stop.h"
#include "cli/verbs.h"
#include "norma/core/arena.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/version.h"

namespace {

using norma::cli::note;

// An unknown verb, or an option in its place, is named with the nearest known one before anything else is read.
void check_verb(const CLI::App& app, const std::string& first) {
  std::vector<std::string> known;
  if (first.starts_with('-')) {
    if (app.get_option_no_throw(first) != nullptr) return;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    norma::fail("norma has no option '{}'{}; norma --help lists its verbs", first, norma::did_you_mean(first, known));
  }
  for (const CLI::App* verb : app.get_subcommands({})) known.push_back(verb->get_name());
  if (std::find(known.begin(), known.end(), first) != known.end()) return;
  norma::fail("there is no verb '{}'{}; norma --help lists them", first, norma::did_you_mean(first, known));
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
  if (!all.empty() && all[0] == "help") {  // "help train" is "train --help"
    all.erase(all.begin());
    all.push_back("--help");
  }
  std::reverse(all.begin(), all.end());
  return all;
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
    std::string words = "norma: " + norma::cli::words_of(*program, error);
    return words.ends_with('\n') ? words : words + "\n";
  });
  int exit_code = 0;
  try {
    norma::cli::add_verbs(app, exit_code);
    if (argc < 2) {
      norma::cli::print("{}", app.help());
      return 0;
    }
    std::vector<std::string> words = arguments(argc, argv);
    check_verb(app, words.back());
    app.parse(std::move(words));
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
