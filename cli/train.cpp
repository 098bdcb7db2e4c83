// norma train: one run from a configuration; resumes where it was, stops cleanly, ends with a verdict.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/output.h"
#include "cli/overrides.h"
#include "cli/progress.h"
#include "cli/run_end.h"
#include "cli/stop.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/store/run_directory.h"
#include "norma/train/result.h"
#include "norma/train/run_schemes.h"
#include "norma/train/trainer.h"

namespace norma::cli {
namespace {

struct TrainOptions {
  std::string config;
  std::string out;
  SchemeLibrary schemes = SchemeLibrary::of_environment();
  bool print_config = false;
  bool json = false;
  bool quiet = false;
};

class TrainDisplay final : public RunObserver {
 public:
  TrainDisplay(bool quiet, std::int64_t every)
      : progress_(quiet), quiet_(quiet), live_(isatty(STDERR_FILENO) != 0), every_(every) {
    progress_.at("reading the data and planning");
  }

  void started(const Cohort& cohort, const Source& source) override {
    set_stop(Stop::when_saved);
    first_step_ = cohort.step();
    const RunConfig& c = cohort.config();
    progress_.say(
        fmt::format("{} | {} layer{}, width {}, {} parameters{} | {}", c.model.scheme.asked(), c.model.layers,
                    c.model.layers == 1 ? "" : "s", c.model.width, with_units(static_cast<double>(cohort.parameters())),
                    cohort.members() > 1 ? fmt::format(", {} members", cohort.members()) : "", source.describe()));
    if (first_step_ > 0) progress_.say(fmt::format("resumed at step {}", first_step_));
    progress_.at("the first step");
  }

  void warned(const std::string& what) override { progress_.warn(what); }

  void stepped(const Cohort& cohort, double seconds) override {
    set_stop(Stop::when_saved);
    last_ = cohort.step() == cohort.config().train.steps || cohort.active_members() == 0;
    if (quiet_) return;
    if (last_ || (!live_ && cohort.step() % every_ == 0)) progress_.say(status(cohort, seconds));
    if (!last_ && seconds - shown_ < (live_ ? 0.1 : 1)) return;
    shown_ = seconds;
    progress_.at(last_ ? "evaluating" : status(cohort, seconds));
  }

  // Until the next step there is nothing that a stop could lose.
  void saved(std::int64_t) override {
    set_stop(Stop::at_once);
    if (last_) progress_.at("judging the trained model on held-out data");
  }

  void happened(const MemberEvent& event) override {
    progress_.say(fmt::format("step {}{}: {} ({})", event.step,
                              event.member > 0 ? fmt::format(", member {}", event.member) : "", event.what, event.why));
  }

  void evaluated(const Cohort& cohort) override {
    std::string losses;
    for (int member = 0; member < cohort.members(); ++member) {
      const MemberState& state = cohort.member(member);
      if (state.evaluation_loss && !state.diverged) losses += fmt::format(" {:.4f}", *state.evaluation_loss);
    }
    if (!losses.empty()) progress_.say(fmt::format("step {}: held-out loss{}", cohort.step(), losses));
  }

 private:
  std::string status(const Cohort& cohort, double seconds) const {
    const std::int64_t done = cohort.step() - first_step_;
    const double per_step = seconds / static_cast<double>(std::max<std::int64_t>(1, done));
    const double left = per_step * static_cast<double>(cohort.config().train.steps - cohort.step());
    const double members = cohort.active_members();
    std::string loss;
    if (cohort.members() == 1) {
      const MemberState& state = cohort.member(0);
      loss = fmt::format("loss {:.4f}  grad {:.3g}  lr {:.2e}", state.loss, state.gradient_norm, state.lr);
    } else {
      double best = std::numeric_limits<double>::infinity();
      for (int member = 0; member < cohort.members(); ++member) {
        if (!cohort.member(member).diverged) best = std::min(best, cohort.member(member).loss);
      }
      loss = fmt::format("best loss {:.4f}  {} of {} members", best, cohort.active_members(), cohort.members());
    }
    const std::string unit = counted_unit(cohort.config().model);
    return fmt::format("{:>6}/{}  {}  {} {}/s  {:.1f} GFLOP/s  {}  {} left", cohort.step(), cohort.config().train.steps,
                       loss, with_units(static_cast<double>(cohort.tokens_per_step()) * members / per_step),
                       unit == "token" ? "tok" : unit + "s", cohort.flops_per_step() * members / per_step * 1e-9,
                       bytes_text(static_cast<double>(cohort.memory_bytes())), duration_text(left));
  }

  Progress progress_;
  bool quiet_, live_;
  std::int64_t every_;
  std::int64_t first_step_ = 0;
  double shown_ = -1;
  bool last_ = false;  // there are no more steps
};

RunResult stored_result(const RunView& run) {
  const std::string text = run.result();
  try {
    return read_result(text, fmt::format("'{}'", run.result_path().string()));
  } catch (const Error& error) {
    fail("{}; remove it and the DONE beside it, and the same command makes it again from the last checkpoint",
         error.what());
  }
}

RunConfig config_for(const TrainOptions& options, const std::string& directory,
                     const std::vector<std::string>& extras) {
  const SchemeLibrary schemes = library_to_resume(directory, options.schemes);
  RunConfig config = options.config.empty() ? RunConfig() : read_config(config_file(options.config, schemes), schemes);
  apply_overrides(config, extras, schemes);
  return config;
}

// Where the run went, and how it ended.
struct Trained {
  std::string directory;
  RunEnd end;
};

Trained train_in(const TrainOptions& options, const std::string& directory, const std::vector<std::string>& extras,
                 const std::vector<std::string>& command) {
  const RunConfig config = config_for(options, directory, extras);
  TrainDisplay display(options.quiet || options.json, std::max<std::int64_t>(1, config.train.steps / 20));
  return {directory, run_training({.config = config, .directory = directory, .command_line = command}, display,
                                  stop_on_signals())};
}

// runs/NAME, or where that holds another run, runs/NAME-2 and so on: who names no directory wants one of his own.
Trained train_somewhere(const TrainOptions& options, const std::vector<std::string>& extras,
                        const std::vector<std::string>& command) {
  const std::string stem = options.config.empty() ? "default" : std::filesystem::path(options.config).stem().string();
  for (int number = 1;; ++number) {
    const std::string directory = number == 1 ? "runs/" + stem : fmt::format("runs/{}-{}", stem, number);
    try {
      return train_in(options, directory, extras, command);
    } catch (const OtherRunError&) {
      note("{} holds another run\n", directory);
    }
  }
}

int run_train(const TrainOptions& options, const std::vector<std::string>& extras,
              const std::vector<std::string>& command) {
  if (options.print_config) {
    print("{}", print_config(config_for(options, options.out.empty() ? "runs/default" : options.out, extras), true));
    return 0;
  }
  const auto [directory, end] =
      options.out.empty() ? train_somewhere(options, extras, command) : train_in(options, options.out, extras, command);
  if (end == RunEnd::interrupted) {
    note("stopped; run the same command again to continue\n");
    return kStoppedCode;
  }
  if (end == RunEnd::finished_before) note("{} is already finished; nothing was trained\n", directory);
  const PageOfRun page = end == RunEnd::finished ? PageOfRun::anew : PageOfRun::kept;
  if (options.json) {
    close_run(directory, options.schemes, page);
    write_json(RunView(directory).result());
  } else {
    print("{}", outcome_table(stored_result(RunView(directory))));
    const std::string failure = close_run(directory, options.schemes, page);
    print("{}", failure);
    const bool has_page = kind_of(std::filesystem::path(directory) / kReportName) == PathKind::file;
    print("{} {}{}\n", end == RunEnd::finished_before ? "its results are in" : "written to", directory,
          has_page ? fmt::format(", with {}", kReportName) : "");
  }
  return 0;
}

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* verb = app.add_subcommand("train", "Train one model, or several side by side, from a configuration");
  verb->add_option("config", options->config, "TOML file; without it the embedded default run")->type_name(kFile);
  verb->add_option("--out", options->out, "Run directory; an unfinished run of the same configuration is resumed")
      ->type_name(kFolder);
  verb->add_flag("--print-config", options->print_config, "Print the resolved configuration with what each key means");
  verb->add_flag("--json", options->json, "Print the result as JSON");
  verb->add_flag("--quiet", options->quiet, "No progress");
  add_schemes_dir(*verb, options->schemes);
  add_run_options(*verb);
  add_model_family(*verb);
  add_device(*verb);
  take_keys(*verb, "Any key of the configuration: --train.lr=3e-4 --model.scheme='norm(x + f(x))'");
  verb->callback([options, verb, &exit_code] { exit_code = run_train(*options, overrides_of(*verb), command_line()); });
}

}  // namespace norma::cli
