// norma: one program, one verb per file. Exit codes: 0 done, 2 a mistake in what was given, 130 stopped on request, 1 a
// mistake in norma.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/version.h"

namespace {

// An unknown verb is named, with the nearest known one, before anything else is read.
void check_verb(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  if (std::find(verbs.begin(), verbs.end(), argv[1]) != verbs.end()) return;
  norma::fail("there is no verb '{}'{}; norma --help lists them", argv[1], norma::did_you_mean(argv[1], verbs));
}

// Where stdout is closed, the next file that is opened would take its number, and what is printed would land in it.
void occupy_stdout() {
  if (fcntl(STDOUT_FILENO, F_GETFD) != -1) return;
  const int nothing = open("/dev/null", O_RDONLY);  // writing to it fails
  if (nothing < 0 || nothing == STDOUT_FILENO) return;
  dup2(nothing, STDOUT_FILENO);
  close(nothing);
}

int refused_output(int error) {
  if (error == EPIPE) return 128 + SIGPIPE;  // the reader has seen enough, as with `| head`
  fmt::print(stderr, "norma: cannot write the output: {}\n", std::system_category().message(error));
  return 2;
}

// What was printed may still wait in a buffer, and be refused only now.
int flushed(int code) {
  errno = 0;
  const bool arrived = std::cout.flush().good() && std::fflush(stdout) == 0;
  return arrived || code != 0 ? code : refused_output(errno);
}

int run(int argc, char** argv) {
  CLI::App app("norma: training engine and stability laboratory for residual networks");
  app.set_version_flag("--version", std::string("norma ") + NORMA_VERSION);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* verb, const CLI::Error& error) {
    return "norma: " + CLI::FailureMessage::simple(verb, error);
  });
  int exit_code = 0;
  try {
    norma::cli::add_bench(app);
    norma::cli::add_check(app);
    norma::cli::add_generate(app);
    norma::cli::add_inspect(app);
    norma::cli::add_plan(app);
    norma::cli::add_schemes(app);
    norma::cli::add_sweep(app, exit_code);
    norma::cli::add_study(app, exit_code);
    norma::cli::add_train(app, exit_code);
    check_verb(app, argc, argv);
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const norma::Error& error) {
    fmt::print(stderr, "norma: {}\n", error.what());
    return 2;
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return refused_output(error.code().value());
    fmt::print(stderr, "norma: internal error: {}\n", error.what());
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "norma: internal error: {}\n", error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_stdout();
  return flushed(run(argc, argv));
}
