// norma study: the main job. Compares schemes and says which one to use.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "cli/output.h"
#include "cli/overrides.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "norma/backends/device.h"
#include "norma/core/error.h"
#include "norma/lab/study.h"
#include "norma/lab/study_depths.h"
#include "norma/lab/sweep_schemes.h"
#include "norma/report/report.h"
#include "norma/train/data.h"

namespace norma::cli {
namespace {

struct StudyOptions {
  std::vector<std::string> schemes;
  std::vector<std::int64_t> depths, warmups;
  std::vector<double> rates;
  std::string config, text, seeds;
  std::string out = "study";
  SchemeLibrary library = SchemeLibrary::of_environment();
  std::vector<std::int64_t> layers;
  std::int64_t width = 0, steps = 0;
  std::string budget;
  std::int64_t asked_layers = 0, asked_width = 0;
  int extra_rates = StudyConfig().extra_rates;
  bool no_inspect = false, no_train = false, no_depth_use = false, depth_use = false;
  bool json = false, quiet = false;
};

class StudyDisplay final : public StudyObserver {
 public:
  StudyDisplay(bool quiet, const StudyBudget& budget) : progress_(quiet), budget_(budget) {
    progress_.at("reading the data and planning");
  }

  void progressed(std::string_view part, double done, std::string_view what) override {
    const auto now = Clock::now();
    if (part != part_) {
      part_ = part;
      part_began_ = now;
      progress_.say(fmt::format("{} ...", part));
      // Analyses keep nothing that a stop could lose; training does.
      const bool analyses = part.ends_with("analyses at init") || part.ends_with("use of depth");
      set_stop(analyses ? Stop::at_once : Stop::when_saved);
    }
    if (now - shown_ < std::chrono::milliseconds(100) && done < 1) return;
    shown_ = now;
    Progress::Now state{.what = fmt::format("{} {:.0f} %: {}", part, 100 * done, what)};
    const double here = std::chrono::duration<double>(now - part_began_).count();
    const double all = std::chrono::duration<double>(now - began_).count();
    double left = done > 0.02 ? here * (1 - done) / done : std::nan("");
    // A time is spent on all parts together.
    if (budget_.unit == StudyBudget::Unit::seconds) {
      left = std::max(std::isnan(left) ? 0 : left, budget_.amount - all);
      state.share = all / (all + left);
    }
    // So is an amount of work: the rest of it takes as long as what was done took, which the share says.
    if (spent_ > 0) {
      state.share = std::min(spent_, 1.0);
    } else if (std::isfinite(left)) {
      state.seconds_left = left;
    }
    progress_.at(std::move(state));
  }

  void spent(double share) override { spent_ = std::max(spent_, share); }

  void said(const std::string& line) override { progress_.say(line); }

 private:
  using Clock = std::chrono::steady_clock;

  Progress progress_;
  StudyBudget budget_;
  std::string part_;
  double spent_ = 0;  // of a budget of work
  Clock::time_point began_ = Clock::now(), part_began_ = began_, shown_ = {};
};

// Nothing is said about models, data or training, but where they run.
bool is_default(const StudyOptions& options, const std::vector<std::string>& extras) {
  const bool keys = std::ranges::any_of(extras, [](const std::string& key) {
    return !key.starts_with("--train.device=") && !key.starts_with("--train.threads=");
  });
  return !keys && options.config.empty() && options.text.empty() && options.layers.empty() && options.width == 0 &&
         options.steps == 0 && options.rates.empty() && options.warmups.empty() && !options.no_train;
}

bool runs_on_gpu(const std::vector<std::string>& extras) {
  RunConfig config;
  for (const std::string& key : extras) {
    if (key.starts_with("--train.device=")) config.train.device = parse_device(key.substr(key.find('=') + 1));
  }
  return resolve(config.train.device) == Device::cuda;
}

// Schemes that a study in this folder began with count where nobody else knows them.
SchemeLibrary library_to_go_on(const StudyOptions& options) {
  const std::filesystem::path folder = options.out;
  SchemeLibrary library = library_to_resume_sweep(folder / "sweep", options.library);
  for (const std::int64_t layers : options.layers)
    library = library_to_resume_sweep(study_directory_at(folder, layers) / "sweep", std::move(library));
  return library;
}

// The default study of the family that was asked for; a file has its own models and training.
StudyConfig study_to_begin_with(const StudyOptions& options, const std::vector<std::string>& extras,
                                const SchemeLibrary& library) {
  RunConfig asked = options.config.empty() ? RunConfig() : read_config(options.config, library);
  apply_overrides(asked, extras, library);
  if (asked.model.family != RunConfig().model.family) {
    StudyConfig config = default_study_of(asked.model.family);
    // Its settings are of its own task; another, such as that of files, knows nothing of them.
    DataConfig& data = config.base.data;
    const bool chosen = asked.data.task != RunConfig().data.task || !asked.data.path.empty();
    if (chosen && settle_task(asked).data.task != settle_task(config.base).data.task) {
      data.task = asked.data.task;
      data.settings.clear();
    }
    if (const auto& fits = asked.model.family->study.fits)
      std::erase_if(config.schemes, [&](const SchemeChoice& scheme) { return !fits(asked.model, scheme.asked()); });
    return config;
  }
  return is_default(options, extras) && runs_on_gpu(extras) ? default_study_on_gpu() : StudyConfig();
}

StudyConfig study_config(const StudyOptions& options, const std::vector<std::string>& extras) {
  const SchemeLibrary library = library_to_go_on(options);
  StudyConfig config = study_to_begin_with(options, extras, library);
  if (!options.config.empty()) config.base = read_config(options.config, library);
  std::vector<std::string> schemes = separate_schemes(options.schemes, library);
  if (schemes.empty()) {
    for (const SchemeChoice& scheme : config.schemes) schemes.push_back(scheme.asked());
  }
  config.schemes.clear();
  for (const std::string& scheme : schemes) config.schemes.push_back(library.find(scheme));
  if (!options.depths.empty()) config.depths = options.depths;
  if (!options.rates.empty()) config.rates = options.rates;
  if (!options.warmups.empty()) config.warmups = options.warmups;
  if (!options.seeds.empty()) config.seeds = parse_seeds(options.seeds);
  if (!options.layers.empty()) config.base.model.layers = options.layers[0];
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
  config.depth_use_whatever_it_takes = options.depth_use;
  if (!options.budget.empty()) config.budget = parse_budget(options.budget);
  config.asked_layers = options.asked_layers;
  config.asked_width = options.asked_width;
  apply_overrides(config.base, extras, library);
  return config;
}

int run_depths(const StudyRequest& request, const std::vector<std::int64_t>& depths, const StudyOptions& options) {
  const DepthsResult result = [&] {
    StudyDisplay display(options.quiet || options.json, request.config.budget);
    return run_study_of_depths(request, depths, display, stop_on_signals());
  }();
  set_stop(Stop::at_once);
  if (result.interrupted) {
    note("stopped; run the same command again to continue\n");
    return 130;
  }
  if (result.finished_before) note("{} is already finished; nothing was computed\n", request.directory.string());
  std::vector<Results> all;
  std::vector<std::int64_t> shown;
  for (const DepthStudy& study : result.studies) {
    write_report(study.directory / "report.html", study.results_json);
    all.push_back(read_results(study.results_json, fmt::format("'{}'", (study.directory / "results.json").string())));
    shown.push_back(study.layers);
  }
  write_depths_report(request.directory / "report.html", result.studies);
  if (options.json) {
    std::vector<std::string> documents;
    for (const DepthStudy& study : result.studies) documents.push_back(study.results_json);
    write_json(fmt::format("[{}]", fmt::join(documents, ",")));
    return 0;
  }
  for (std::size_t i = 0; i < all.size(); ++i) print("\n{}\n{}", layers_text(shown[i]), study_table(all[i]));
  print("\n{}\nreport: {}\n", depths_table(all, shown), (request.directory / "report.html").string());
  return 0;
}

int run(const StudyOptions& options, const std::vector<std::string>& extras) {
  const StudyConfig config = study_config(options, extras);
  std::vector<std::int64_t> depths = options.layers;
  if (is_default(options, extras) && runs_on_gpu(extras))
    depths.assign(std::begin(kDepthsOnGpu), std::end(kDepthsOnGpu));
  if (depths.size() > 1)
    return run_depths({.config = config, .directory = options.out, .command_line = command_line()}, depths, options);
  const std::filesystem::path folder = options.out;
  const StudyResult result = [&] {
    StudyDisplay display(options.quiet || options.json, config.budget);
    return run_study({.config = config, .directory = folder, .command_line = command_line()}, display,
                     stop_on_signals());
  }();
  set_stop(Stop::at_once);
  if (result.interrupted) {
    note("stopped; run the same command again to continue\n");
    return 130;
  }
  if (result.finished_before) note("{} is already finished; nothing was computed\n", folder.string());
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
  add_schemes_option(*verb, options->schemes, "Names, files or formulas, separated by spaces");
  verb->add_option("--depths", options->depths, "Of the analyses at init")->delimiter(',')->type_name(kList);
  verb->add_option("--layers,--depth", options->layers, "Of the models that are trained; several: a study of each")
      ->delimiter(',')
      ->type_name(kList)
      ->check(CLI::Range(1, 10000));
  verb->add_option("--width", options->width, "Of all models")->check(CLI::Range(1, 100000));
  verb->add_option("--lr", options->rates, "Peak learning rates to try")->delimiter(',')->type_name(kList);
  verb->add_option("--extra-rates", options->extra_rates,
                   "At most so many more for a scheme whose best is the smallest or largest tried; 0: none")
      ->capture_default_str()
      ->check(CLI::Range(0, 16));
  verb->add_option("--warmup", options->warmups, "Warmups to try, in steps")->delimiter(',')->type_name(kList);
  verb->add_option("--budget", options->budget,
                   "What it may spend: 3min, 1h, 2e9tokens, 40000steps; 0: short runs alone. Default 3min");
  verb->add_option("--seeds", options->seeds,
                   std::string("That settings are chosen with; the final comparison has others. ") + kSeedsHelp)
      ->type_name(kList);
  verb->add_option("--steps", options->steps, "Of the short runs")->check(CLI::Range(1, 1000000000));
  verb->add_option("--for-layers", options->asked_layers, "Depth of the model that you will train, for the advice")
      ->check(CLI::Range(1, 1000000));
  verb->add_option("--for-width", options->asked_width, "Its width")->check(CLI::Range(1, 1000000));
  verb->add_option("--text", options->text, "Train on this text instead of the generated task")->type_name(kFile);
  verb->add_option("--config", options->config, "TOML file of the runs, as for norma train")->type_name(kFile);
  verb->add_option("--out", options->out, "Folder for results.json, report.html and the runs")
      ->capture_default_str()
      ->type_name(kFolder);
  verb->add_flag("--no-inspect", options->no_inspect, "Leave out the analyses at init");
  verb->add_flag("--no-train", options->no_train, "Leave out training");
  CLI::Option* without =
      verb->add_flag("--no-depth-use", options->no_depth_use, "Leave out what the layers are worth after training");
  verb->add_flag("--depth-use", options->depth_use,
                 "Measure that whatever it takes; without it as far as a fifth of a time budget goes")
      ->excludes(without);
  verb->add_flag("--json", options->json, "Print results.json");
  verb->add_flag("--quiet", options->quiet, "No progress");
  add_schemes_dir(*verb, options->library);
  add_model_family(*verb);
  add_device(*verb);
  take_keys(*verb, "Any key of the configuration of the runs: --train.steps=500 --model.norm=rms");
  verb->callback([options, verb, &exit_code] { exit_code = run(*options, overrides_of(*verb)); });
}

}  // namespace norma::cli
