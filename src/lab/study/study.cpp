#include "norma/lab/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "lab/directory_kind.h"
#include "lab/study/directory.h"
#include "lab/study/parts.h"
#include "lab/study/verdict.h"
#include "lab/sweep/data.h"
#include "lab/sweep/keys.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"
#include "norma/core/side_by_side.h"
#include "norma/lab/inspect.h"
#include "norma/lab/results.h"
#include "norma/lab/sweep.h"
#include "norma/lab/sweep_schemes.h"
#include "norma/store/atomic_file.h"
#include "norma/store/directory_lock.h"
#include "norma/store/environment.h"
#include "norma/train/data.h"
#include "norma/train/trainer.h"

namespace norma {
namespace {

StudyConfig settled(StudyConfig config) {
  config.base = settle_task(std::move(config.base));
  return config;
}

class SweepWatcher final : public SweepObserver {
 public:
  SweepWatcher(StudyObserver& observer, std::string part) : observer_(observer), part_(std::move(part)) {}

  void planned(std::int64_t runs, std::int64_t ended, int cohorts) override {
    observer_.said(fmt::format("training {} runs in {} cohorts{}", runs, cohorts,
                               ended > 0 ? fmt::format(", {} of them done before", ended) : ""));
  }
  void warned(const std::string& what) override { observer_.said("warning: " + what); }
  void stepped(const SweepProgress& progress, const Cohort& cohort) override {
    observer_.progressed(part_, progress.share, cohort.config().model.scheme.asked());
  }

 private:
  StudyObserver& observer_;
  std::string part_;
};

class Study {
 public:
  Study(const StudyRequest& request, StudyObserver& observer, const std::atomic<bool>& stop)
      : config_(settled(request.config)),
        request_(request),
        observer_(observer),
        stop_(stop),
        source_(open_data(config_.base)),
        resolved_(resolve_config(config_.base, *source_)) {
    for (const SchemeChoice& scheme : config_.schemes) schemes_.push_back(summary_of(scheme));
    for (const SchemeChoice& scheme : config_.schemes) {
      SchemeEvidence evidence{.scheme = scheme.asked(), .title = scheme->title, .layers = config_.base.model.layers};
      if (evidence.title.empty()) evidence.title = scheme.asked();
      if (config_.base.model.family == Family::encoder_decoder) evidence.stack = "decoder ";
      evidence_.push_back(std::move(evidence));
    }
    std::vector<double> rates = config_.rates;
    std::sort(rates.begin(), rates.end());
    grids_.assign(config_.schemes.size(), rates);
    if (config_.train) sweep_cells(sweep_config());  // mistakes are found before anything is computed
  }

  StudyResult run() {
    const auto start = std::chrono::steady_clock::now();
    if (config_.inspect && !stop_) inspect_schemes();
    if (config_.train && !stop_) train_schemes();
    if (config_.train && config_.depth_use && !stop_) measure_depth();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return {.results_json = write_results(describe(seconds)), .interrupted = stop_};
  }

 private:
  void inspect_schemes() {
    InspectOptions options;
    options.schemes = config_.schemes;
    options.model = config_.base.model;
    options.depths = config_.depths;
    options.seeds = seeds_at_init(config_.seeds);
    options.only = {"gradient", "stream", "amplification"};
    options.theory = true;
    options.open = [this](const ModelConfig& model) {
      RunConfig config = config_.base;
      config.model.batch = model.batch;
      config.model.time = model.time;
      return open_data(config);
    };
    findings_ = inspect(
        options, [this](double done, std::string_view what) { observer_.progressed("analyses at init", done, what); });
    for (const Analysis& analysis : findings_.analyses) gather_laws(evidence_, analysis);
  }

  // Every scheme with the rates of its own grid.
  SweepConfig sweep_config() const {
    SweepConfig sweep{.base = config_.base};
    for (const SchemeChoice& scheme : config_.schemes) sweep.schemes.put(scheme);
    const auto texts = [](const auto& values) {
      std::vector<std::string> all;
      for (const auto& value : values) all.push_back(fmt::format("{}", value));
      return all;
    };
    for (std::size_t i = 0; i < grids_.size(); ++i) {
      for (const double rate : grids_[i])
        sweep.points.push_back({{"model.scheme", normal_value(sweep, "model.scheme", config_.schemes[i].asked())},
                                {"train.lr", normal_value(sweep, "train.lr", fmt::format("{}", rate))}});
    }
    set_axis(sweep, "train.warmup", texts(config_.warmups));
    set_axis(sweep, "train.seed", texts(config_.seeds));
    return sweep;
  }

  std::filesystem::path sweep_directory() const { return request_.directory / "sweep"; }

  void train_schemes() {
    train_grids("training");
    for (int round = 0; round < config_.extra_rates && !stop_ && widen_grids(); ++round) train_grids("rates beyond");
    if (only_read_ && !stop_) run_grids("training");  // trains nothing, but sets right what a kill left of the index
  }

  // A round that has ended is only read: to a sweep of fewer cells a cohort of the next round, cut short by a kill,
  // would be one that nobody asks for any more.
  void train_grids(const std::string& part) {
    outcomes_ = read_outcomes(sweep_config(), sweep_directory());
    only_read_ = std::all_of(outcomes_.begin(), outcomes_.end(),
                             [](const RunOutcome& outcome) { return outcome.status != RunStatus::waiting; });
    if (!only_read_) run_grids(part);
    gather_cells(evidence_, outcomes_, config_.rates);
  }

  void run_grids(const std::string& part) {
    SweepWatcher watcher(observer_, part);
    outcomes_ =
        run_sweep({.config = sweep_config(), .directory = sweep_directory(), .command_line = request_.command_line},
                  watcher, stop_)
            .outcomes;
  }

  // One more rate for each scheme whose best lies at an end of those tried.
  bool widen_grids() {
    bool wider = false;
    for (std::size_t i = 0; i < grids_.size(); ++i) {
      const RateEdge edge = edge_of_best(evidence_[i]);
      const std::optional<double> rate = rate_beyond(grids_[i], edge);
      if (!rate) continue;
      grids_[i].insert(edge == RateEdge::largest ? grids_[i].end() : grids_[i].begin(), *rate);
      observer_.said(
          fmt::format("{}: the best rate is the {} tried; trying {:g}", evidence_[i].title, name_of(edge), *rate));
      wider = true;
    }
    return wider;
  }

  bool is_extra(double rate) const {
    return std::find(config_.rates.begin(), config_.rates.end(), rate) == config_.rates.end();
  }

  // One trained model per seed of the best setting of every scheme, side by side: each has a single member.
  void measure_depth() {
    struct Trained {
      SchemeEvidence* evidence;
      const RunOutcome* outcome;
      DepthFinding found = {};
      std::vector<std::string> notes = {};
    };
    std::vector<Trained> all;
    for (SchemeEvidence& evidence : evidence_) {
      const TrainedCell* best = best_cell(evidence);
      if (best == nullptr) continue;
      for (const RunOutcome& outcome : outcomes_) {
        if (outcome.scheme != evidence.scheme || outcome.lr != best->lr || outcome.warmup != best->warmup) continue;
        all.push_back({&evidence, &outcome});
      }
    }
    const int threads = config_.base.train.threads > 0 ? static_cast<int>(config_.base.train.threads) : machine().cores;
    const int at_once = std::max(1, std::min(threads, static_cast<int>(all.size())));
    std::mutex telling;
    double done = 0;
    side_by_side(all.size(), at_once, [&](std::size_t index) {
      if (stop_) return;
      Trained& one = all[index];
      {
        const std::lock_guard lock(telling);
        observer_.progressed("use of depth", done++ / static_cast<double>(all.size()), one.evidence->title);
      }
      const StoredModel stored = open_stored_model(sweep_directory() / "runs" / one.outcome->id);
      Subject subject = trained_subject(stored, *one.outcome);
      subject.threads = std::max(1, threads / at_once);
      one.notes.clear();
      one.found = inspect_depth(subject, one.notes);
    });
    if (stop_) return;
    for (SchemeEvidence& evidence : evidence_) {
      std::vector<double> depths;
      for (Trained& one : all) {
        if (one.evidence != &evidence) continue;
        findings_.notes.insert(findings_.notes.end(), one.notes.begin(), one.notes.end());
        depths.push_back(one.found.effective_depth.mean);
        // The profiles of the first seed stand for all; the number is a mean over them.
        if (depths.size() == 1) findings_.depth_use.push_back(std::move(one.found));
      }
      if (depths.empty()) continue;
      evidence.effective_depth = depths.size() > 1 ? estimate_of(depths) : findings_.depth_use.back().effective_depth;
      const double layers = static_cast<double>(evidence.layers);  // the interval cannot leave the model
      evidence.effective_depth->low = std::max(0.0, evidence.effective_depth->low);
      evidence.effective_depth->high = std::min(layers, evidence.effective_depth->high);
      findings_.depth_use.back().effective_depth = *evidence.effective_depth;
    }
  }

  Subject trained_subject(const StoredModel& stored, const RunOutcome& outcome) const {
    Subject subject{.model = stored.config.model, .source = source_, .weights = stored.weights};
    subject.seeds = {static_cast<std::uint64_t>(stored.config.train.data_seed)};
    subject.model.dropout = subject.model.smoothing = false;
    subject.step = static_cast<double>(outcome.last_step);
    subject.steps = static_cast<double>(outcome.steps);
    return subject;
  }

  // At the depth that is trained, whatever depths were inspected.
  SchemeSummary summary_of(const SchemeChoice& scheme) const {
    ModelConfig model = resolved_.model;
    model.scheme = scheme;
    return summarise_scheme(model);
  }

  void add_extra_rates(Results& results) const {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < grids_.size(); ++i) {
      std::vector<double> extra;
      for (const double rate : grids_[i]) {
        if (is_extra(rate)) extra.push_back(rate);
      }
      if (extra.empty()) continue;
      texts.push_back(fmt::format("{} ({:g})", evidence_[i].title, fmt::join(extra, ", ")));
      results.extra_rates.push_back({config_.schemes[i].asked(), std::move(extra), edge_of_best(evidence_[i])});
    }
    if (texts.empty()) return;
    results.notes.push_back(fmt::format(
        "Rates beyond the grid were tried for schemes whose best rate was at its edge: {}. Sensitivity is over "
        "the rates that all schemes share.",
        fmt::join(texts, ", ")));
  }

  Results describe(double seconds) {
    Results results = new_results(ResultsKind::study);
    results.seconds = seconds;
    for (const std::string& word : request_.command_line)
      results.command += (results.command.empty() ? "" : " ") + word;
    results.config = print_config(config_.base);
    results.environment = environment_now(request_.command_line);
    results.task =
        TaskFacts{.name = config_.base.data.task,
                  .description = source_->describe(),
                  .optimum = source_->optimum(),
                  .unigram = unigram_entropy(*source_, static_cast<std::uint64_t>(config_.base.train.data_seed))};
    findings_.schemes = schemes_;
    add_findings(results, findings_);
    if (!outcomes_.empty()) {
      add_outcomes(results, outcomes_, config_.rates);
      add_extra_rates(results);
    }
    results.verdicts = judge_schemes(evidence_);
    results.advice = advise(evidence_, results.verdicts, static_cast<int>(config_.seeds.size()),
                            name_of(config_.base.train.optimiser.name));
    return results;
  }

  const StudyConfig config_;
  const StudyRequest& request_;
  StudyObserver& observer_;
  const std::atomic<bool>& stop_;
  std::shared_ptr<const Source> source_;
  RunConfig resolved_;  // what the data says is filled in
  std::vector<SchemeSummary> schemes_;
  std::vector<SchemeEvidence> evidence_;
  std::vector<std::vector<double>> grids_;  // rates of each scheme, ascending
  Findings findings_;
  std::vector<RunOutcome> outcomes_;
  bool only_read_ = false;  // all runs of the last round had ended before
};

}  // namespace

StudyResult run_study(const StudyRequest& request, StudyObserver& observer, const std::atomic<bool>& stop) {
  const std::filesystem::path sweep = request.directory / "sweep";
  require_study_directory(request.directory);
  check_study(request.config);
  require_same_schemes(sweep, request.config.schemes);
  require_same_data(sweep, {settle_task(request.config.base).data});
  if (auto results = finished_study(request)) {
    const Folder folder(request.directory);
    const DirectoryLock lock(folder);
    remove_stale_temporaries(folder);  // of a report that a kill cut short
    return {.results_json = std::move(*results), .finished_before = true};
  }
  Study study(request, observer, stop);
  const StudyDirectory directory(request);
  StudyResult result = study.run();
  if (!result.interrupted) directory.finish(result.results_json);
  return result;
}

}  // namespace norma
