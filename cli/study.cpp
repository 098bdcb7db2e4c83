// norma study: the main job. Compares schemes and says which one to use.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "cli/output.h"
#include "cli/overrides.h"
#include "cli/stop.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/lab/study.h"
#include "norma/lab/sweep_schemes.h"
#include "norma/report/report.h"

namespace norma::cli {
namespace {

struct StudyOptions {
  std::vector<std::string> schemes;
  std::vector<std::int64_t> depths, warmups, seeds;
  std::vector<double> rates;
  std::string config, text;
  std::string out = "study";
  SchemeLibrary library = SchemeLibrary::of_environment();
  std::int64_t layers = 0, width = 0, steps = 0;
  std::string budget;
  std::int64_t asked_layers = 0, asked_width = 0;
  int extra_rates = StudyConfig().extra_rates;
  bool no_inspect = false, no_train = false, no_depth_use = false;
  bool json = false, quiet = false;
};

class StudyDisplay final : public StudyObserver {
 public:
  explicit StudyDisplay(bool quiet) : quiet_(quiet), live_(isatty(STDERR_FILENO) != 0) {}

  void progressed(std::string_view part, double done, std::string_view what) override {
    if (quiet_) return;
    const auto now = std::chrono::steady_clock::now();
    if (part != part_) {
      close();
      part_ = part;
      started_ = now;
      if (!live_) note("{} ...\n", part);
    }
    if (!live_ || (now - shown_ < std::chrono::milliseconds(100) && done < 1)) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - started_).count();
    const double left = done > 0.02 ? seconds * (1 - done) / done : std::nan("");
    const int filled = static_cast<int>(24 * done);
    std::string bar;
    for (int i = 0; i < 24; ++i) bar += i < filled ? "█" : "░";
    note("\r\033[K{:<17} {} {:>3.0f} %  {} left  {}", part, bar, 100 * done, duration_text(left), what);
    open_ = true;
  }

  void said(const std::string& line) override {
    if (quiet_) return;
    close();
    note("{}\n", line);
  }

  void close() {
    if (open_) note("\n");
    open_ = false;
  }

 private:
  bool quiet_, live_, open_ = false;
  std::string part_;
  std::chrono::steady_clock::time_point started_, shown_;
};

StudyConfig study_config(const StudyOptions& options, const std::vector<std::string>& extras) {
  StudyConfig config;
  const SchemeLibrary library = library_to_resume_sweep(std::filesystem::path(options.out) / "sweep", options.library);
  if (!options.config.empty()) config.base = read_config(options.config, library);
  std::vector<std::string> schemes = options.schemes;
  if (schemes.empty()) {
    for (const SchemeChoice& scheme : config.schemes) schemes.push_back(scheme.asked());
  }
  config.schemes.clear();
  for (const std::string& scheme : schemes) config.schemes.push_back(library.find(scheme));
  if (!options.depths.empty()) config.depths = options.depths;
  if (!options.rates.empty()) config.rates = options.rates;
  if (!options.warmups.empty()) config.warmups = options.warmups;
  if (!options.seeds.empty()) config.seeds = options.seeds;
  if (options.layers > 0) config.base.model.layers = options.layers;
  if (options.width > 0) config.base.model.width = options.width;
  if (options.steps > 0) config.base.train.steps = options.steps;
  if (!options.text.empty()) {
    config.base.data.task = "text";
    config.base.data.path = options.text;
  }
  config.extra_rates = options.extra_rates;
  config.inspect = !options.no_inspect;
  config.train = !options.no_train;
  config.depth_use = !options.no_depth_use;
  if (!options.budget.empty()) config.budget = parse_budget(options.budget);
  config.asked_layers = options.asked_layers;
  config.asked_width = options.asked_width;
  apply_overrides(config.base, extras, library);
  return config;
}

int run(const StudyOptions& options, const std::vector<std::string>& extras) {
  const StudyConfig config = study_config(options, extras);
  StudyDisplay progress(options.quiet || options.json);
  const std::filesystem::path folder = options.out;
  const StudyResult result =
      run_study({.config = config, .directory = folder, .command_line = command_line()}, progress, stop_on_signals());
  progress.close();
  if (result.interrupted) {
    note("stopped; the same command goes on from here\n");
    return 130;
  }
  if (result.finished_before) note("{} had finished before; nothing was computed\n", folder.string());
  write_report(folder / "report.html", result.results_json);
  if (options.json) {
    write_json(result.results_json);
  } else {
    const Results results = read_results(result.results_json, fmt::format("'{}'", (folder / "results.json").string()));
    print("\n{}\nreport: {}\n", study_table(results), (folder / "report.html").string());
  }
  return 0;
}

}  // namespace

void add_study(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<StudyOptions>();
  CLI::App* verb = app.add_subcommand("study", "Compare schemes: analyses, training at each one's best rate, verdicts");
  verb->add_option("--schemes", options->schemes, "Names, files or formulas, separated by spaces")->expected(1, -1);
  verb->add_option("--depths", options->depths, "Of the analyses at init")->delimiter(',');
  verb->add_option("--layers,--depth", options->layers, "Of the models that are trained")->check(CLI::Range(1, 10000));
  verb->add_option("--width", options->width, "Of all models")->check(CLI::Range(1, 100000));
  verb->add_option("--lr", options->rates, "Peak learning rates to try")->delimiter(',');
  verb->add_option("--extra-rates", options->extra_rates,
                   "At most so many more for a scheme whose best is the smallest or largest tried; 0: none")
      ->capture_default_str()
      ->check(CLI::Range(0, 16));
  verb->add_option("--warmup", options->warmups, "Warmups to try, in steps")->delimiter(',');
  verb->add_option("--budget", options->budget,
                   "What it may spend: 3min, 1h, 2e9tokens, 40000steps; 0: short runs alone. Default 3min");
  verb->add_option("--seeds", options->seeds, "That settings are chosen with; the final comparison has others")
      ->delimiter(',');
  verb->add_option("--steps", options->steps, "Of the short runs")->check(CLI::Range(1, 1000000000));
  verb->add_option("--for-layers", options->asked_layers, "Depth of the model that you will train, for the advice");
  verb->add_option("--for-width", options->asked_width, "Its width");
  verb->add_option("--text", options->text, "Train on this text instead of the generated task");
  verb->add_option("--config", options->config, "TOML file of the runs, as for norma train");
  verb->add_option("--out", options->out, "Folder for results.json, report.html and the runs")->capture_default_str();
  verb->add_flag("--no-inspect", options->no_inspect, "Leave out the analyses at init");
  verb->add_flag("--no-train", options->no_train, "Leave out training");
  verb->add_flag("--no-depth-use", options->no_depth_use, "Leave out what the layers are worth after training");
  verb->add_flag("--json", options->json, "Print results.json");
  verb->add_flag("--quiet", options->quiet, "No progress");
  add_schemes_dir(*verb, options->library);
  verb->footer("Any key of the configuration of the runs: --train.steps=500 --model.norm=rms");
  add_device(*verb);
  verb->allow_extras();
  verb->callback([options, verb, &exit_code] { exit_code = run(*options, overrides_of(*verb)); });
}

}  // namespace norma::cli
