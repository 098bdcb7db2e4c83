// norma runs: the runs in a folder, with what became of them.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "cli/output.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "norma/core/words.h"
#include "norma/lab/run_list.h"

namespace norma::cli {
namespace {

struct RunsVerb {
  std::string folder = "runs", order = "name";
  bool reverse = false, json = false;
  SchemeLibrary schemes = SchemeLibrary::of_environment();
};

std::string size_text(const ListedRun& run) {
  if (run.layers == 0) return "-";
  const std::string shape = fmt::format("{}x{}", run.layers, run.width);
  return run.parameters == 0 ? shape : fmt::format("{} {}", shape, with_units(static_cast<double>(run.parameters)));
}

std::string runs_table(const std::vector<ListedRun>& runs) {
  Table table({{.title = "run", .left = true},
               {.title = "outcome", .left = true},
               {.title = "loss"},
               {.title = "scheme", .left = true},
               {.title = "size", .left = true, .optional = true},
               {.title = "steps", .left = false, .optional = true},
               {.title = "lr", .left = false, .optional = true},
               {.title = "task", .left = true, .optional = true}});
  for (const ListedRun& run : runs) {
    const std::string outcome =
        run.kind == ListedKind::run ? run.outcome : fmt::format("{}: {}", name_of(run.kind), run.outcome);
    table.add({printable(run.path), printable(outcome), std::isfinite(run.loss) ? fmt::format("{:.4f}", run.loss) : "-",
               printable(run.scheme), size_text(run), run.steps > 0 ? fmt::format("{}", run.steps) : "-",
               run.lr > 0 ? fmt::format("{:.1e}", run.lr) : "-", printable(run.task)});
  }
  return table.text(output_columns());
}

void run_runs(const RunsVerb& verb) {
  const RunOrder order = from_word(words_for(RunOrder()), verb.order, "order of runs");
  RunList list = list_runs(verb.folder, verb.schemes);
  sort_runs(list.runs, order);
  if (verb.reverse) std::reverse(list.runs.begin(), list.runs.end());
  if (verb.json) {
    write_json(write_run_list(list));
    return;
  }
  if (list.runs.empty()) {
    print("there are no runs in '{}'\n", verb.folder);
  } else {
    write_out(runs_table(list.runs));
  }
  std::string rest;
  for (const UnreadFolder& folder : list.damaged)
    rest += fmt::format("damaged: {}: {}\n", printable(folder.path), printable(folder.why));
  for (const std::string& folder : list.foreign) rest += fmt::format("holds no run: {}\n", printable(folder));
  const std::optional<std::size_t> columns = output_columns();
  write_out(columns ? wrapped(rest, *columns) : rest);
}

}  // namespace

void add_runs(CLI::App& app, int& /*exit_code*/) {
  const auto verb = std::make_shared<RunsVerb>();
  CLI::App* command = app.add_subcommand("runs", "List the runs in a folder: outcome, loss, scheme, size");
  command->add_option("folder", verb->folder, "Folder of runs, or a sweep (runs)")->type_name(kFolder);
  command->add_option("--sort", verb->order, "By what they are ordered (name)")
      ->type_name(fmt::format("{}", fmt::join(words_of(words_for(RunOrder())), "|")));
  command->add_flag("--reverse", verb->reverse, "The other way round");
  command->add_flag("--json", verb->json, "Print JSON");
  add_schemes_dir(*command, verb->schemes);
  command->callback([verb] { run_runs(*verb); });
}

}  // namespace norma::cli
