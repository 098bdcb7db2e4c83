#include "norma/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "norma/core/side_by_side.h"
#include "norma/data/tokenizer.h"
#include "norma/data/vocabulary.h"
#include "norma/store/atomic_file.h"
#include "norma/store/environment.h"
#include "norma/store/run_directory.h"
#include "norma/train/causality.h"
#include "norma/train/data.h"
#include "norma/train/data_record.h"
#include "norma/train/generate.h"
#include "norma/train/run_schemes.h"
#include "norma/train/trained_run.h"
#include "train/records.h"
#include "train/same_run.h"

namespace norma {
namespace {

using Clock = std::chrono::steady_clock;

// The first loss is that of the initial weights.
bool is_recorded(const TrainConfig& train, std::int64_t step) {
  return step == 1 || step % train.log_every == 0 || step == train.steps;
}

// On a device that runs ahead the host looks at a step while the next one runs, so that the device never waits; steps
// that are recorded, evaluated or stored it looks at at once. Not where it may undo what a step did: then what it
// decides must not depend on where a run was interrupted. A member that has diverged takes no part in anything, so a
// step more or less of it is nothing.
int lag_of(const RunConfig& config) {
  const bool runs_ahead = resolve(config.train.device, config.model.dtype) == Device::cuda;
  return runs_ahead && config.detect.recovery == Recovery::none && config.train.accumulate == 1 ? 1 : 0;
}

RunConfig with_stored_data(const RunRequest& request) {
  RunConfig config = request.config;
  config.data = stored_data(config.data, request.directory);
  if (!request.names_leaks && config.train.leaks == Leaks::refuse)
    require_causal(config.model, static_cast<double>(config.train.steps));
  return config;
}

class Run {
 public:
  Run(const RunRequest& request, RunObserver& observer, const std::atomic<bool>& stop)
      : observer_(observer),
        stop_(stop),
        source_(open_data(with_stored_data(request))),
        threads_(request.threads),
        weights_(request.weights),
        scores_(request.scores),
        cohort_(request.config, source_, {.lag = lag_of(request.config), .threads = threads_ ? threads_() : 0}),
        directory_(open_directory(request)),
        metrics_(directory_.open_metrics(
            restored_step_, {}, recorded_steps(cohort_.config().train, request.recorded_before, restored_step_))),
        records_(cohort_) {
    cohort_.require_room_for_evaluation();
    const auto seed = static_cast<std::uint64_t>(cohort_.settings().front().data_seed);
    if (const auto why = nothing_to_learn(*source_, cohort_.config().model, seed))
      observer_.warned(fmt::format("there is nothing to learn: {} ({})", *why, source_->describe()));
    keep_tokenizer();
    keep_vocabulary();
    if (cohort_.config().train.tensorboard) events_.emplace(directory_.open_events(restored_step_));
  }

  RunEnd run() {
    observer_.started(cohort_, *source_);
    const TrainConfig& train = cohort_.config().train;
    while (cohort_.step() < train.steps && cohort_.active_members() > 0) {
      if (stop_) {
        log_late(cohort_.look_back(), cohort_.step() + 1);
        save();
        return RunEnd::interrupted;
      }
      if (threads_) cohort_.use_threads(threads_());
      const auto before = Clock::now();
      const std::int64_t next = cohort_.step() + 1;
      const bool seen = recorded(next) || due(next, train.evaluate_every) || due(next, train.checkpoint_every);
      const std::vector<MemberEvent> events = cohort_.train_step(recorded(next) ? Watching::yes : Watching::no,
                                                                 seen ? Cohort::Look::at_all : Cohort::Look::by_lag);
      seconds_ += std::chrono::duration<double>(Clock::now() - before).count();
      ++steps_;
      const bool last = cohort_.step() == train.steps || cohort_.active_members() == 0;
      log(events);
      observer_.stepped(cohort_, seconds_);
      if (due(next, train.evaluate_every) || last) evaluate();
      if (due(next, train.checkpoint_every) && !last) save();
    }
    if (weights_) save();
    const std::vector<Scores> found = scores_ ? scores() : std::vector<Scores>();
    const std::string result = write_result(describe_result(cohort_, *source_, seconds_, steps_, found));
    if (!weights_) save();
    directory_.finish(result);
    return RunEnd::finished;
  }

 private:
  RunDirectory open_directory(const RunRequest& request) {
    const RunView view(request.directory);
    const DataRecord data = record_data(cohort_.config().data, *source_);
    if (!view.exists())
      return RunDirectory::create(Folder::make(request.directory),
                                  {.config = print_config(cohort_.config()),
                                   .environment = describe_environment(request.command_line),
                                   .scheme = cohort_.config().model.scheme->text,
                                   .data = print_data_record(data)});
    check_same_run(view, cohort_.config());
    require_same_data(view, data);
    RunDirectory directory = RunDirectory::resume(request.directory);
    for (const std::string& file : doubtful_files(stored_record(view), data))
      observer_.warned(fmt::format(
          "'{}' was written to since the run began; what is compared of a file so large is the same", file));
    keep_missing(directory, data);
    const CheckpointSearch search = checkpoint_to_resume(directory, cohort_.config().train.checkpoint_every);
    for (const std::string& warning : search.warnings) observer_.warned(warning);
    if (search.newest) {
      cohort_.restore(search.newest->file);
      restored_step_ = cohort_.step();
    }
    return directory;
  }

  // What a run of an earlier version did not keep, or somebody removed.
  void keep_missing(const RunDirectory& directory, const DataRecord& data) const {
    const auto keep = [&](const char* name, const std::string& before, const std::string& text) {
      if (before.empty() && !text.empty()) write_atomically(directory.folder(), name, text);
    };
    keep("data.json", directory.data(), print_data_record(data));
    keep("scheme.toml", directory.scheme(), cohort_.config().model.scheme->text);
  }

  // So that the run can be moved, and asked where its data are not.
  void keep_vocabulary() const {
    const std::string name = directory_.vocabulary_path().filename().string();
    if (directory_.folder().has_file(name)) return;
    const std::string text = print_vocabulary(cohort_.config().data, *source_);
    if (!text.empty()) write_atomically(directory_.folder(), name, text);
  }

  void keep_tokenizer() const {
    const Tokenizer* tokenizer = source_->tokenizer();
    if (tokenizer == nullptr || tokenizer->model().empty() || !cohort_.config().data.tokenizer_path.empty()) return;
    const std::string name = directory_.tokenizer_path().filename().string();
    if (!directory_.folder().has_file(name)) write_atomically(directory_.folder(), name, tokenizer->model());
  }

  static bool due(std::int64_t step, std::int64_t every) { return every > 0 && step % every == 0; }

  bool recorded(std::int64_t step) const { return is_recorded(cohort_.config().train, step); }

  void write(std::int64_t step, int member, const std::vector<Metric>& metrics) {
    if (events_) events_->add_scalars(step, records_.scalars(member, metrics));
    metrics_.append(step, metrics);
  }

  double seconds_per_step() const { return seconds_ / static_cast<double>(std::max<std::int64_t>(steps_, 1)); }

  void log(const std::vector<MemberEvent>& events) {
    log_late(events, cohort_.step());
    // The last loss of a member is written whoever trains beside it.
    const bool everyone = recorded(cohort_.step());
    for (int member = 0; member < cohort_.members(); ++member) {
      const MemberState& state = cohort_.member(member);
      if (state.diverged ? state.diverged_at_step == cohort_.step() : everyone)
        write(cohort_.step(), member, records_.step(cohort_, member, seconds_per_step()));
    }
    for (const MemberEvent& event : events) {
      if (event.step == cohort_.step()) log_event(event);
    }
  }

  // What happened before step `now` and has only been seen since: no other record of those steps is to come.
  void log_late(const std::vector<MemberEvent>& events, std::int64_t now) {
    for (const MemberEvent& event : events) {
      if (event.step >= now) continue;
      const MemberState& state = cohort_.member(event.member);
      if (state.diverged && state.diverged_at_step == event.step)
        write(event.step, event.member, records_.step(cohort_, event.member, seconds_per_step()));
      log_event(event);
    }
  }

  void log_event(const MemberEvent& event) {
    metrics_.append(event.step, records_.event(event));
    observer_.happened(event);
  }

  void evaluate() {
    cohort_.evaluate();
    for (int member = 0; member < cohort_.members(); ++member) {
      if (const auto record = records_.evaluation(cohort_, member); !record.empty())
        write(cohort_.step(), member, record);
    }
    observer_.evaluated(cohort_);
  }

  // Members side by side; on a GPU, where a session fills the device, one after another. A score that cannot be had is
  // no reason to lose the result.
  std::vector<Scores> scores() {
    cohort_.release_evaluation();
    const int threads = threads_ ? threads_() : cohort_.threads();
    const bool on_gpu = resolve(cohort_.config().train.device) == Device::cuda;
    const int at_once = on_gpu ? 1 : std::max(1, std::min(threads, cohort_.active_members()));
    std::vector<Scores> all(static_cast<std::size_t>(cohort_.members()));
    std::vector<std::string> problems(all.size());
    side_by_side(all.size(), at_once, [&](std::size_t index) {
      const int member = static_cast<int>(index);
      if (cohort_.member(member).diverged) return;
      try {
        TrainedModel model = trained_model(cohort_, member);
        model.config.train.threads = std::max(1, threads / at_once);
        all[index] = judge(model, *source_);
      } catch (const Error& error) {
        problems[index] = fmt::format("member {} has no scores: {}", member, error.what());
      }
    });
    for (const std::string& problem : problems) {
      if (!problem.empty()) observer_.warned(problem);
    }
    return all;
  }

  void save() {
    metrics_.seal();
    if (events_) events_->flush();
    const bool ends = cohort_.step() == cohort_.config().train.steps || cohort_.active_members() == 0;
    directory_.save_checkpoint(
        cohort_.step(), weights_ || !ends ? cohort_.checkpoint_tensors() : std::vector<TensorData>(),
        cohort_.checkpoint_metadata(), {.keep_last = static_cast<int>(cohort_.config().train.keep_checkpoints)});
    observer_.saved(cohort_.step());
  }

  RunObserver& observer_;
  const std::atomic<bool>& stop_;
  std::shared_ptr<const Source> source_;
  std::function<int()> threads_;
  bool weights_, scores_;
  Cohort cohort_;
  std::int64_t restored_step_ = -1;  // before the directory, which sets it
  RunDirectory directory_;
  MetricsLog metrics_;
  RunRecords records_;
  std::optional<EventWriter> events_;
  double seconds_ = 0;      // of training in this process
  std::int64_t steps_ = 0;  // in this process
};

}  // namespace

std::vector<std::int64_t> recorded_steps(const TrainConfig& train, std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> steps;
  const auto add = [&](std::int64_t step) {
    if (step > first && step <= last && (steps.empty() || steps.back() < step)) steps.push_back(step);
  };
  add(1);
  for (std::int64_t step = train.log_every; step <= last; step += train.log_every) add(step);
  add(train.steps);
  return steps;
}

RunEnd run_training(const RunRequest& request, RunObserver& observer, const std::atomic<bool>& stop) {
  const RunView view(request.directory);
  if (!view.exists() || !view.is_done()) return Run(request, observer, stop).run();
  check_same_run(view, resolved_as(view, request.config));
  DataRecord now;  // of the files that are still there
  for (const auto& [path, print] : stored_record(view).files) add_fingerprint(now, path);
  require_same_data(view, now);
  view.verify_end();
  return RunEnd::finished_before;
}

}  // namespace norma
