#include "norma/train/trainer.h"

#include <chrono>
#include <cmath>
#include <map>

#include "norma/data/tokenizer.h"
#include "norma/store/atomic_file.h"
#include "norma/store/environment.h"
#include "norma/store/run_directory.h"
#include "norma/train/data.h"
#include "norma/train/generate.h"
#include "norma/train/run_schemes.h"
#include "train/records.h"

namespace norma {
namespace {

using Clock = std::chrono::steady_clock;

// Keys that may change from one process to the next without changing a bit of the result.
bool may_differ(const std::string& key) { return key == "train.threads"; }

// Refuses a directory that holds a run of another configuration.
void check_same_run(const RunView& run, const RunConfig& wanted) {
  SchemeLibrary schemes;
  schemes.put(wanted.model.scheme);  // for runs that have kept none
  const RunConfig stored = parse_config(run.config(), run.config_path().string(), library_of_run(run.path(), schemes));
  const std::vector<ConfigKey> before = config_keys(stored), now = config_keys(wanted);
  std::map<std::string, std::string> values;
  for (const ConfigKey& key : before) values[key.name] = key.value;
  for (const ConfigKey& key : now) {
    const auto found = values.find(key.name);
    const std::string old = found == values.end() ? "nothing" : found->second;
    if (found != values.end()) values.erase(found);
    if (old == key.value || may_differ(key.name)) continue;
    fail("'{}' holds another run: its {} is {}, this one's is {}; choose another directory, or repeat the first run",
         run.path().string(), key.name, old, key.value);
  }
  if (!values.empty())
    fail("'{}' holds another run: its {} is {}, this one has none", run.path().string(), values.begin()->first,
         values.begin()->second);
  const std::string kept = run.scheme();
  if (kept.empty()) return;
  if (const auto difference = scheme_difference(kept, wanted.model.scheme->text))
    fail(
        "'{}' holds another run: the scheme '{}' has changed since it began: {}; choose another directory, or go on "
        "with the scheme as it was, in '{}'",
        run.path().string(), wanted.model.scheme.asked(), *difference, run.scheme_path().string());
}

std::filesystem::path tokenizer_model_path(const std::filesystem::path& run) { return run / "tokenizer.model"; }

RunConfig with_stored_data(const RunRequest& request) {
  RunConfig config = request.config;
  config.data = stored_data(config.data, request.directory);
  return config;
}

class Run {
 public:
  Run(const RunRequest& request, RunObserver& observer, const std::atomic<bool>& stop)
      : observer_(observer),
        stop_(stop),
        source_(open_data(with_stored_data(request))),
        cohort_(request.config, source_),
        directory_(open_directory(request)),
        metrics_(directory_.open_metrics(restored_step_)),
        records_(cohort_) {
    keep_tokenizer();
    if (cohort_.config().train.tensorboard) events_.emplace(directory_.open_events(restored_step_));
  }

  RunEnd run() {
    observer_.started(cohort_, *source_);
    const TrainConfig& train = cohort_.config().train;
    while (cohort_.step() < train.steps && cohort_.active_members() > 0) {
      if (stop_) {
        save();
        return RunEnd::interrupted;
      }
      const auto before = Clock::now();
      const std::vector<MemberEvent> events =
          cohort_.train_step(recorded(cohort_.step() + 1) ? Watching::yes : Watching::no);
      seconds_ += std::chrono::duration<double>(Clock::now() - before).count();
      ++steps_;
      const bool last = cohort_.step() == train.steps || cohort_.active_members() == 0;
      log(events);
      observer_.stepped(cohort_, seconds_);
      if (due(train.evaluate_every) || last) evaluate();
      if (due(train.checkpoint_every) && !last) save();
    }
    save();
    directory_.finish(describe_result(cohort_, *source_, seconds_, steps_, scores()));
    return RunEnd::finished;
  }

 private:
  RunDirectory open_directory(const RunRequest& request) {
    const RunView view(request.directory);
    if (!view.exists())
      return RunDirectory::create(request.directory, print_config(cohort_.config()),
                                  describe_environment(request.command_line), cohort_.config().model.scheme->text);
    check_same_run(view, cohort_.config());
    RunDirectory directory = RunDirectory::resume(request.directory);
    const CheckpointSearch search = checkpoint_to_resume(directory, cohort_.config().train.checkpoint_every);
    for (const std::string& warning : search.warnings) observer_.warned(warning);
    if (search.newest) {
      cohort_.restore(search.newest->file);
      restored_step_ = cohort_.step();
    }
    return directory;
  }

  void keep_tokenizer() const {
    const Tokenizer* tokenizer = source_->tokenizer();
    if (tokenizer == nullptr || tokenizer->model().empty() || !cohort_.config().data.tokenizer_path.empty()) return;
    const std::filesystem::path path = tokenizer_model_path(directory_.path());
    if (!std::filesystem::exists(path)) write_atomically(path, tokenizer->model());
  }

  bool due(std::int64_t every) const { return every > 0 && cohort_.step() % every == 0; }

  // The first loss is that of the initial weights.
  bool recorded(std::int64_t step) const {
    const TrainConfig& train = cohort_.config().train;
    return step == 1 || step % train.log_every == 0 || step == train.steps;
  }

  void write(int member, std::vector<Metric> metrics) {
    if (events_) events_->add_scalars(cohort_.step(), records_.scalars(member, metrics));
    metrics_.append(cohort_.step(), metrics);
  }

  void log(const std::vector<MemberEvent>& events) {
    // The last loss of a member is written whoever trains beside it.
    const bool everyone = recorded(cohort_.step());
    for (int member = 0; member < cohort_.members(); ++member) {
      const MemberState& state = cohort_.member(member);
      if (state.diverged ? state.diverged_at_step == cohort_.step() : everyone)
        write(member, records_.step(cohort_, member, seconds_ / static_cast<double>(steps_)));
    }
    for (const MemberEvent& event : events) {
      metrics_.append(cohort_.step(), records_.event(event));
      observer_.happened(event);
    }
  }

  void evaluate() {
    cohort_.evaluate();
    for (int member = 0; member < cohort_.members(); ++member) {
      if (const auto record = records_.evaluation(cohort_, member); !record.empty()) write(member, record);
    }
    observer_.evaluated(cohort_);
  }

  // A score that cannot be had is no reason to lose the result.
  std::vector<Scores> scores() {
    cohort_.release_evaluation();
    std::vector<Scores> all(static_cast<std::size_t>(cohort_.members()));
    for (int member = 0; member < cohort_.members(); ++member) {
      if (cohort_.member(member).diverged) continue;
      try {
        all[static_cast<std::size_t>(member)] = judge(trained_model(cohort_, member), *source_);
      } catch (const Error& error) {
        observer_.warned(fmt::format("member {} has no scores: {}", member, error.what()));
      }
    }
    return all;
  }

  void save() {
    metrics_.sync();
    if (events_) events_->flush();
    directory_.save_checkpoint(cohort_.step(), cohort_.checkpoint_tensors(), cohort_.checkpoint_metadata(),
                               {.keep_last = static_cast<int>(cohort_.config().train.keep_checkpoints)});
    observer_.saved(cohort_.step());
  }

  RunObserver& observer_;
  const std::atomic<bool>& stop_;
  std::shared_ptr<const Source> source_;
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

CheckpointSearch checkpoint_to_resume(const RunView& run, std::int64_t checkpoint_every) {
  CheckpointSearch search = run.newest_checkpoint();
  if (search.newest) return search;
  std::string missing = fmt::format("{}", fmt::join(search.warnings, "; "));
  if (missing.empty() && std::filesystem::exists(run.metrics_path())) {
    // The first step is always recorded, and nothing is recorded behind a checkpoint before that is on disk.
    const std::vector<MetricRecord> records = read_metrics(run.metrics_path());
    if (records.empty()) return search;
    const std::int64_t first = records.front().step, last = records.back().step;
    const bool had_one = first > 1 || (checkpoint_every > 0 && last > checkpoint_every);
    if (had_one) missing = fmt::format("there is none, though metrics.jsonl goes to step {}", last);
  }
  if (!missing.empty())
    fail("'{}' holds a run that cannot go on: no checkpoint can be read: {}; move it away or give another --out",
         run.path().string(), missing);
  return search;
}

DataConfig stored_data(DataConfig data, const std::filesystem::path& run) {
  const std::filesystem::path model = tokenizer_model_path(run);
  const bool trains = data.tokenizer == "sentencepiece" && data.tokenizer_path.empty();
  if (trains && RunView(run).exists() && std::filesystem::exists(model)) data.tokenizer_path = model.string();
  return data;
}

RunEnd run_training(const RunRequest& request, RunObserver& observer, const std::atomic<bool>& stop) {
  const RunView view(request.directory);
  if (view.exists() && view.is_done())
    fail("'{}' holds a finished run; its result is in '{}'. Choose another directory for a new one",
         request.directory.string(), view.result_path().string());
  return Run(request, observer, stop).run();
}

}  // namespace norma
