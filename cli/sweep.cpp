// norma sweep: a grid of runs as cohorts; resumes where it was, stops cleanly, ends with what the runs say together.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "cli/output.h"
#include "cli/overrides.h"
#include "cli/progress.h"
#include "cli/run_end.h"
#include "cli/stop.h"
#include "cli/sweep_table.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/core/mapped_file.h"
#include "norma/lab/results.h"
#include "norma/lab/sweep.h"
#include "norma/lab/sweep_schemes.h"
#include "norma/report/report.h"
#include "norma/store/atomic_file.h"
#include "norma/store/environment.h"
#include "norma/store/run_directory.h"
#include "norma/train/result.h"
#include "norma/version.h"

namespace norma::cli {
namespace {

struct SweepOptions {
  std::string config;
  std::string out, seeds;
  std::vector<std::string> axis;  // schemes
  SchemeLibrary schemes = SchemeLibrary::of_environment();
  bool json = false;
  bool quiet = false;
  bool report = false;
};

class SweepDisplay final : public SweepObserver {
 public:
  explicit SweepDisplay(bool quiet) : progress_(quiet), quiet_(quiet), live_(isatty(STDERR_FILENO) != 0) {
    progress_.at("reading the data and planning");
  }

  void planned(std::int64_t runs, std::int64_t done, int cohorts) override {
    set_stop(Stop::when_saved);
    progress_.say(fmt::format("{} runs{} in {} cohort{}", runs, done > 0 ? fmt::format(", {} of them done,", done) : "",
                              cohorts, cohorts == 1 ? "" : "s"));
  }
  void warned(const std::string& what) override { progress_.warn(what); }

  void started(const SweepProgress& progress, const Cohort& cohort) override {
    const ModelConfig& model = cohort.config().model;
    progress_.say(fmt::format("cohort {} of {}: {} | {} layer{}, width {}, {} parameters, {} member{}, {}{}",
                              progress.cohort, progress.cohorts, model.scheme.asked(), model.layers,
                              model.layers == 1 ? "" : "s", model.width,
                              with_units(static_cast<double>(cohort.parameters())), cohort.members(),
                              cohort.members() == 1 ? "" : "s", bytes_text(static_cast<double>(cohort.memory_bytes())),
                              cohort.step() > 0 ? fmt::format(", from step {}", cohort.step()) : ""));
    shown_ = progress.seconds;
  }

  void stepped(const SweepProgress& progress, const Cohort& cohort) override {
    const bool last = cohort.step() == progress.until;
    if (quiet_ || (!last && progress.seconds - shown_ < (live_ ? 0.1 : 1))) return;
    shown_ = progress.seconds;
    double best = std::numeric_limits<double>::infinity();
    for (int member = 0; member < cohort.members(); ++member) {
      if (!cohort.member(member).diverged) best = std::min(best, cohort.member(member).loss);
    }
    Progress::Now now{
        .what = fmt::format("cohort {} of {}  step {}/{}  {} of {} members  best loss {:.4f}  {}/{} runs",
                            progress.cohort, progress.cohorts, cohort.step(), progress.until, cohort.active_members(),
                            cohort.members(), best, progress.ended, progress.runs),
        .share = progress.share};
    if (std::isfinite(progress.seconds_left)) now.seconds_left = progress.seconds_left;
    progress_.at(std::move(now));
  }

  void happened(const SweepCell& cell, const MemberEvent& event) override {
    if (event.what != "spike")
      progress_.say(fmt::format("{}, step {}: {} ({})", cell.id, event.step, event.what, event.why));
  }

 private:
  Progress progress_;
  bool quiet_, live_;
  double shown_ = 0;
};

// "--train.lr=[1e-4, 1e-3]", or the key and its value as two words.
void apply_sweep_overrides(SweepConfig& config, const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!argument.starts_with("--") || argument.find('.') == std::string::npos)
      fail("'{}' is not an option; expected a key of the configuration such as --train.lr=[1e-4,1e-3]", argument);
    std::string assignment = argument.substr(2);
    if (assignment.find('=') == std::string::npos) {
      if (i + 1 == arguments.size()) fail("{} has no value; expected {}=VALUE", argument, argument);
      assignment += "=" + arguments[++i];
    }
    override_sweep(config, assignment);
  }
}

// --schemes as an axis, --seeds as points of weights and data together, each combined with all there are.
void apply_short_axes(SweepConfig& config, const SweepOptions& options) {
  if (!options.axis.empty()) set_axis(config, "model.scheme", separate_schemes(options.axis, options.schemes));
  if (options.seeds.empty()) return;
  const std::vector<SweepPoint> before = config.points.empty() ? std::vector<SweepPoint>(1) : config.points;
  config.points.clear();
  for (const SweepPoint& point : before) {
    for (const std::int64_t seed : parse_seeds(options.seeds)) {
      config.points.push_back(point);
      for (const char* key : {"train.seed", "train.data_seed"}) {
        if (std::any_of(config.axes.begin(), config.axes.end(), [&](const SweepAxis& one) { return one.key == key; }))
          fail("--seeds and an axis {} were given; expected one of them", key);
        config.points.back().emplace_back(key, fmt::format("{}", seed));
      }
    }
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

// A grid over families has the usual task of each.
std::string tasks_of(const SweepConfig& config) {
  std::string names;
  std::set<std::string> seen;
  for (const SweepCell& cell : sweep_cells(config)) {
    if (seen.insert(cell.config.data.task).second) names += (names.empty() ? "" : ", ") + cell.config.data.task;
  }
  return names;
}

// Of losses, where all runs have the same; empty: nats.
std::string unit_of(const SweepConfig& config) {
  std::set<std::string> units;
  for (const SweepCell& cell : sweep_cells(config)) units.insert(loss_unit(cell.config.model));
  return units.size() == 1 ? *units.begin() : "";
}

void show(const Outcomes& outcomes, const std::string& results, const std::string& directory, bool as_json) {
  if (as_json) {
    write_json(results);
  } else {
    const bool has_page = kind_of(std::filesystem::path(directory) / kReportName) == PathKind::file;
    print("{}written to {}{}\n", sweep_tables(outcomes), directory,
          has_page ? fmt::format(", with {}", kReportName) : "");
  }
}

void report(const Outcomes& outcomes, const SweepConfig& config, const std::string& directory, double seconds,
            bool as_json) {
  Results results = new_results(ResultsKind::sweep);
  results.seconds = seconds;
  results.config = print_sweep(config);
  results.command = joined(command_line());
  results.environment = environment_now(command_line());
  if (!outcomes.empty()) {
    results.task = task_of(outcomes, tasks_of(config));
    results.task->unit = unit_of(config);
  }
  results.schemes = summarise_schemes(config, directory);
  add_outcomes(results, outcomes);
  const std::string text = write_results(results);
  write_atomically(std::filesystem::path(directory) / "results.json", text);
  write_page(std::filesystem::path(directory) / kReportName, [&] { return make_report(text); });
  show(outcomes, text, directory, as_json);
}

// The results of a sweep of which every run had ended before, where they are there and of this grid. Damaged ones are
// made anew.
std::optional<std::string> results_before(const SweepConfig& config, const std::string& directory) {
  const std::filesystem::path path = std::filesystem::path(directory) / "results.json";
  if (kind_of(path) != PathKind::file) return std::nullopt;
  std::string text = read_text(path);
  try {
    const Results results = read_results(text, fmt::format("'{}'", path.string()));
    const bool same = results.norma == NORMA_VERSION && results.config == print_sweep(config);
    return same ? std::optional(std::move(text)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

int run(const SweepOptions& options, const std::vector<std::string>& extras) {
  const std::string stem = options.config.empty() ? "default" : std::filesystem::path(options.config).stem().string();
  const std::string directory = options.out.empty() ? "sweeps/" + stem : options.out;
  const SchemeLibrary schemes = options.report ? library_of_sweep(directory, options.schemes)
                                               : library_to_resume_sweep(directory, options.schemes);
  SweepConfig config = options.config.empty() ? SweepConfig{.schemes = schemes}
                                              : read_sweep(config_file(options.config, schemes), schemes);
  apply_sweep_overrides(config, extras);
  apply_short_axes(config, options);
  if (options.report) {
    if (kind_of(std::filesystem::path(directory) / "sweep.toml") != PathKind::file)
      fail("there is no sweep in '{}'", directory);
    report(read_outcomes(config, directory), config, directory, 0, options.json);
    return 0;
  }
  const SweepResult result = [&] {
    SweepDisplay display(options.quiet || options.json);
    return run_sweep({.config = config, .directory = directory, .command_line = command_line()}, display,
                     stop_on_signals());
  }();
  set_stop(Stop::at_once);
  if (result.interrupted) {
    note("stopped; run the same command again to continue\n");
    return 130;
  }
  if (result.finished_before) note("all {} runs are already finished; nothing was trained\n", result.outcomes.size());
  const auto before = result.finished_before ? results_before(config, directory) : std::nullopt;
  if (before) {
    const std::filesystem::path page = std::filesystem::path(directory) / kReportName;
    if (kind_of(page) != PathKind::file) write_page(page, [&] { return make_report(*before); });
    show(result.outcomes, *before, directory, options.json);
  } else {
    report(result.outcomes, config, directory, result.seconds, options.json);
  }
  return 0;
}

}  // namespace

void add_sweep(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<SweepOptions>();
  CLI::App* verb = app.add_subcommand("sweep", "Train a grid of models side by side and compare them");
  verb->add_option("config", options->config, "TOML file with a [sweep] table; without it the embedded default run")
      ->type_name(kFile);
  verb->add_option("--out", options->out, "Directory of the sweep; an unfinished one goes on where it was")
      ->type_name(kFolder);
  verb->add_option("--scheme,--schemes", options->axis, "Names, files or formulas; short for an axis model.scheme")
      ->expected(1, -1)
      ->type_name(kScheme);
  verb->add_option("--seeds", options->seeds, std::string("Of weights and data of every setting. ") + kSeedsHelp)
      ->type_name(kList);
  verb->add_flag("--json", options->json, "Print the results as JSON");
  verb->add_flag("--quiet", options->quiet, "No progress");
  verb->add_flag("--report", options->report, "Train nothing; report what has ended so far");
  add_schemes_dir(*verb, options->schemes);
  add_model_family(*verb);
  add_device(*verb);
  take_keys(*verb, "A list makes a key an axis: --train.lr=[1e-4,1e-3] --model.scheme=[pre,post] --train.seed=[1,2,3]");
  verb->callback([options, verb, &exit_code] { exit_code = run(*options, overrides_of(*verb)); });
}

}  // namespace norma::cli
