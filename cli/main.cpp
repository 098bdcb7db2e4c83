// norma: one program, one verb per file. Exit codes: 0 done, 2 a mistake in what was given, 1 a mistake in norma.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/version.h"

int main(int argc, char** argv) {
  CLI::App app("norma: training engine and stability laboratory for residual networks");
  app.set_version_flag("--version", std::string("norma ") + NORMA_VERSION);
  app.require_subcommand(1);
  try {
    norma::cli::add_bench(app);
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const norma::Error& error) {
    fmt::print(stderr, "norma: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "norma: internal error: {}\n", error.what());
    return 1;
  }
}
