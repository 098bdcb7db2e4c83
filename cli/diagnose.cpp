// norma diagnose: why a run did not learn or diverged, from what it recorded, and what to try; with --try it tries.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/diagnosis_text.h"
#include "cli/output.h"
#include "cli/overrides.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "norma/backends/device.h"
#include "norma/core/error.h"
#include "norma/lab/diagnose.h"
#include "norma/store/environment.h"
#include "norma/train/trainer.h"

namespace norma::cli {
namespace {

struct DiagnoseVerb {
  std::string run, out, device;  // device: empty: as in the run
  int member = -1;
  std::int64_t steps = 0;
  bool experiments = false, json = false, quiet = false;
  SchemeLibrary schemes = SchemeLibrary::of_environment();
};

void print_folded(const std::string& text) {
  const std::optional<std::size_t> columns = output_columns();
  print("{}", columns ? wrapped(text, *columns, 2) : text);
}

// The trial at hand as a part of all of them.
class TrialDisplay final : public RunObserver {
 public:
  TrialDisplay(Progress& progress, std::string words, double before, double share)
      : progress_(progress), words_(std::move(words)), before_(before), share_(share) {}

  void started(const Cohort& /*cohort*/, const Source& /*source*/) override { set_stop(Stop::when_saved); }
  // Until the next step there is nothing that a stop could lose.
  void saved(std::int64_t /*step*/) override { set_stop(Stop::at_once); }

  void stepped(const Cohort& cohort, double /*seconds*/) override {
    set_stop(Stop::when_saved);
    const double done = static_cast<double>(cohort.step()) / static_cast<double>(cohort.config().train.steps);
    progress_.at(Progress::Now{.what = fmt::format("step {} of {}, loss {:.4f}: {}", cohort.step(),
                                                   cohort.config().train.steps, cohort.member(0).loss, words_),
                               .share = before_ + share_ * done});
  }
  void warned(const std::string& what) override { progress_.warn(what); }

 private:
  Progress& progress_;
  std::string words_;
  double before_, share_;
};

// The member that --try is about: the one that was asked for, or the first that failed.
std::size_t member_to_try(const DiagnoseVerb& verb, const std::vector<Diagnosis>& found) {
  if (verb.member >= 0) return static_cast<std::size_t>(verb.member);
  const auto first = std::find_if(found.begin(), found.end(), [](const Diagnosis& one) {
    return std::any_of(one.suggestions.begin(), one.suggestions.end(),
                       [](const Suggestion& suggestion) { return !suggestion.changes.empty(); });
  });
  return first == found.end() ? 0 : static_cast<std::size_t>(first - found.begin());
}

// Where they run; how fast the run was elsewhere says nothing of that.
void choose_device(std::vector<Trial>& trials, Device device) {
  for (Trial& trial : trials) {
    if (trial.config.train.device != device) trial.seconds = 0;
    trial.config.train.device = device;
  }
}

double seconds_of_all(const std::vector<Trial>& trials) {
  double seconds = 0;
  for (const Trial& trial : trials) seconds += trial.seconds;
  return seconds;
}

std::string about(double seconds) { return seconds > 0 ? "about " + duration_text(std::max(1.0, seconds)) : "about ?"; }

void announce(const std::vector<Trial>& trials, const std::string& folder) {
  std::string text = fmt::format("{} runs in {}, {} in all; Ctrl-C keeps what has been done\n", trials.size(), folder,
                                 about(seconds_of_all(trials)));
  for (const Trial& trial : trials)
    text += fmt::format("  {}, {} steps: {}\n", trial.words, trial.config.train.steps, about(trial.seconds));
  const std::optional<std::size_t> columns = error_columns();
  note("{}", columns ? wrapped(text, *columns, 2) : text);
}

// True: all of them have ended.
bool run_trials(const DiagnoseVerb& verb, const std::vector<Trial>& trials, const std::filesystem::path& folder,
                std::vector<TrialResult>& results) {
  const std::atomic<bool>& stop = stop_on_signals();
  Progress progress(verb.quiet || verb.json);
  double before = 0;
  std::int64_t steps = 0;
  for (const Trial& trial : trials) steps += trial.config.train.steps;
  for (const Trial& trial : trials) {
    const std::filesystem::path directory = folder / trial.name;
    const double share = static_cast<double>(trial.config.train.steps) / static_cast<double>(steps);
    TrialDisplay display(progress, trial.words, before, share);
    const RunEnd end =
        run_training({.config = trial.config, .directory = directory, .command_line = command_line()}, display, stop);
    set_stop(Stop::at_once);
    if (end == RunEnd::interrupted) return false;
    results.push_back(read_trial(trial, directory));
    before += share;
  }
  return true;
}

std::string trial_folder(const DiagnoseVerb& verb) {
  if (!verb.out.empty()) return verb.out;
  std::string run = verb.run;
  while (run.size() > 1 && run.back() == '/') run.pop_back();
  return run + "-try";
}

int try_suggestions(const DiagnoseVerb& verb, const RunHistory& history, DiagnosisReport& report) {
  const std::size_t index = member_to_try(verb, report.members);
  const Diagnosis& diagnosis = report.members[index];
  std::vector<Trial> trials = plan_trials(history, history.members[index], diagnosis, verb.steps, verb.schemes);
  if (!verb.device.empty()) choose_device(trials, parse_device(verb.device));
  if (trials.empty()) {
    if (!verb.json) print("nothing to try: no suggestion is a change of the configuration\n");
    return 0;
  }
  std::error_code none;
  if (std::filesystem::equivalent(trial_folder(verb), verb.run, none))
    fail("--out: '{}' is the run itself; expected another folder for the experiments", trial_folder(verb));
  std::fflush(stdout);  // the diagnosis first, also in a pipe
  if (!verb.quiet && !verb.json) announce(trials, trial_folder(verb));
  const bool done = run_trials(verb, trials, trial_folder(verb), report.trials);
  if (done) report.conclusion = conclude_trials(report.trials, diagnosis);
  if (!verb.json && !report.trials.empty()) print_folded("\n" + trials_text(report.trials, report.conclusion));
  if (!done) note("stopped; run the same command again to continue\n");
  return done ? 0 : kStoppedCode;
}

int run_diagnose(const DiagnoseVerb& verb) {
  if (!verb.device.empty()) resolve(parse_device(verb.device));  // said before anything is read
  const RunHistory history = read_history(verb.run, verb.schemes);
  if (verb.member >= static_cast<int>(history.members.size()))
    fail("--member: there is no member {}; the run in '{}' has {}, counted from 0", verb.member, verb.run,
         history.members.size());
  DiagnosisReport report{.run = verb.run, .scheme = history.config.model.scheme.asked()};
  report.members = diagnose(history);
  if (!verb.json) {
    const ModelConfig& model = history.config.model;
    std::string text = fmt::format("{}: {}, {} layer{}, width {}\n", verb.run, report.scheme, model.layers,
                                   model.layers == 1 ? "" : "s", model.width);
    for (const Diagnosis& diagnosis : report.members) {
      if (verb.member >= 0 && diagnosis.member != verb.member) continue;
      text += "\n" + diagnosis_text(diagnosis, history.members.size() > 1);
    }
    print_folded(text);
  }
  int code = 0;
  if (verb.experiments) code = try_suggestions(verb, history, report);
  if (verb.json) write_json(write_diagnosis(report));
  return code;
}

}  // namespace

void add_diagnose(CLI::App& app, int& exit_code) {
  const auto verb = std::make_shared<DiagnoseVerb>();
  CLI::App* command =
      app.add_subcommand("diagnose", "Say why a run did not learn or diverged, from its probes, and what to try");
  command->add_option("run", verb->run, "A run's directory")->required()->type_name(kFolder);
  command->add_flag("--try", verb->experiments, "Run the two or three cheapest experiments and say what changed");
  command->add_option("--steps", verb->steps, "Of each experiment; 0: as few as may tell (0)")
      ->type_name(kNumber)
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  command->add_option("--member", verb->member, "Only this member, counted from 0")
      ->type_name(kNumber)
      ->check(CLI::Range(0, 1 << 20));
  command->add_option("--out", verb->out, "Directory of the experiments (that of the run with -try behind it)")
      ->type_name(kFolder);
  command->add_option("--device", verb->device, "Where experiments run; without it as in the run")
      ->type_name("auto|cpu|cuda");
  command->add_flag("--json", verb->json, "Print JSON");
  command->add_flag("--quiet", verb->quiet, "No progress");
  add_schemes_dir(*command, verb->schemes);
  command->callback([verb, &exit_code] { exit_code = run_diagnose(*verb); });
}

}  // namespace norma::cli
