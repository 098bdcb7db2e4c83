#include "norma/lab/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "lab/directory_kind.h"
#include "lab/study/depth.h"
#include "lab/study/describe.h"
#include "lab/study/directory.h"
#include "lab/study/map.h"
#include "lab/study/parts.h"
#include "lab/study/play.h"
#include "lab/study/verdict.h"
#include "lab/sweep/data.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"
#include "norma/core/side_by_side.h"
#include "norma/lab/inspect.h"
#include "norma/lab/results.h"
#include "norma/lab/smoothing.h"
#include "norma/lab/sweep.h"
#include "norma/lab/sweep_schemes.h"
#include "norma/store/atomic_file.h"
#include "norma/store/directory_lock.h"
#include "norma/store/environment.h"
#include "norma/store/run_directory.h"
#include "norma/theory/predict.h"
#include "norma/train/causality.h"
#include "norma/train/data.h"
#include "norma/train/result.h"
#include "norma/train/trainer.h"

namespace norma {
namespace {

constexpr std::int64_t kTokensAtInit = 256;
// Of a budget of time. Beyond it no further networks are measured at init: what they settle is no part of the answer.
constexpr double kShareAtInit = 0.2;

// Settings are chosen on one half of the held-out data; the other half judges.
StudyConfig settled(StudyConfig config) {
  config.base = settle_task(std::move(config.base));
  config.base.data.held_out = "even";
  return config;
}

class Study {
 public:
  Study(const StudyRequest& request, StudyObserver& observer, const std::atomic<bool>& stop)
      : config_(settled(request.config)),
        request_(request),
        observer_(observer),
        stop_(stop),
        source_(open_data(config_.base)),
        resolved_(resolve_config(config_.base, *source_)),
        rounds_(config_, request, observer, stop),
        map_(config_, request, observer, stop) {
    for (const SchemeChoice& scheme : config_.schemes) schemes_.push_back(summary_of(scheme));
    for (const SchemeChoice& scheme : config_.schemes) {
      SchemeEvidence evidence{.scheme = scheme.asked(), .title = scheme->title, .layers = config_.base.model.layers};
      if (evidence.title.empty()) evidence.title = scheme.asked();
      const std::vector<StackSites> stacks = last_stacks(config_.base.model);
      if (stacks.size() == 1 && !stacks[0].scope.empty()) evidence.stack = stacks[0].scope + " ";
      evidence.map_steps = config_.base.train.steps;
      evidence_.push_back(std::move(evidence));
    }
    side_by_side(config_.schemes.size(), threads(),
                 [this](std::size_t i) { evidence_[i].leak = leak_in(config_.schemes[i]); });
    if (trains()) sweep_cells(map_.sweep(evidence_));  // mistakes are found before anything is computed
  }

  StudyResult run() {
    if (config_.inspect && !stop_) timed("analyses at init", [this] { inspect_schemes(); });
    if (trains() && !stop_) timed("map", [this] { train_map(); });
    if (trains() && !stop_) timed("rounds after the map", [this] { play_rounds(); });
    if (trains() && config_.depth_use && !stop_) timed("use of depth", [this] { measure_depth(); });
    return {.results_json = write_results(describe()), .interrupted = stop_};
  }

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }
  int threads() const {
    return config_.base.train.threads > 0 ? static_cast<int>(config_.base.train.threads) : machine().cores;
  }

  void timed(std::string_view part, const std::function<void()>& work) {
    const double before = seconds();
    work();
    if (!stop_) observer_.said(fmt::format("{}: {:.1f} s in all", part, seconds() - before));
  }

  void inspect_schemes() {
    InspectOptions options;
    options.schemes = config_.schemes;
    options.model = config_.base.model;
    if (counted_word() == "tokens")  // what a network is at init takes no large batch to see
      options.model.batch = std::clamp<std::int64_t>(kTokensAtInit / options.model.time, 1, options.model.batch);
    options.depths = config_.depths;
    options.seeds = seeds_at_init(config_.seeds);
    options.settle = SettledLaw{.analysis = "amplification"};
    if (config_.budget.unit == StudyBudget::Unit::seconds)
      options.settle->until = began_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                           std::chrono::duration<double>(kShareAtInit * config_.budget.amount));
    options.only = {"gradient", "stream", "amplification"};
    options.theory = true;
    options.threads = threads();
    options.device = config_.base.train.device;
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

  void train_map() {
    const auto per_step = static_cast<double>(tokens_per_step(resolved_));
    map_.train(evidence_, {.tokens_per_step = per_step,
                           .tokens_of_budget = rounds_.tokens_of_budget(per_step),
                           .counted = counted_word()});
  }

  void play_rounds() {
    const auto per_step = static_cast<double>(tokens_per_step(resolved_));
    rounds_.play({.schemes = evidence_,
                  .map_steps = config_.base.train.steps,
                  .tuning_seeds = config_.seeds,
                  .tokens_per_step = per_step,
                  .counted = counted_word(),
                  .guessing = guessing(),
                  .beyond_grid = config_.extra_rates > 0},
                 map_.account(seconds(), per_step), map_.tokens(per_step));
    if (!stop_) gather_rounds(evidence_, rounds_, config_);
  }

  // One trained model for each of the first seeds of every scheme: of the final where there was one, else of the best
  // setting of the map, which keeps its weights where no final is paid for.
  void measure_depth() {
    constexpr std::size_t kSeeds = 3;
    std::vector<DepthSubject> subjects;
    for (std::size_t scheme = 0; scheme < evidence_.size(); ++scheme) {
      const SchemeEvidence& evidence = evidence_[scheme];
      const std::size_t before = subjects.size();
      const auto add = [&](const RunOutcome& outcome, const std::filesystem::path& directory) {
        if (outcome.scheme != evidence.scheme || outcome.diverged() || outcome.learned_nothing() || evidence.faulty() ||
            subjects.size() - before >= kSeeds)
          return;
        subjects.push_back({scheme, outcome, directory});
      };
      for (const StagedOutcome& one : rounds_.outcomes()) {
        if (one.stage == Stage::final) add(one.outcome, one.directory);
      }
      const TrainedCell* best = best_cell(evidence);
      if (subjects.size() > before || best == nullptr) continue;
      for (const RunOutcome& outcome : map_.outcomes()) {
        const std::filesystem::path run = map_.directory() / "runs" / outcome.id;
        if (outcome.lr == best->lr && outcome.warmup == best->warmup && !RunView(run).checkpoint_steps().empty())
          add(outcome, run);
      }
    }
    measure_depth_of(subjects, source_, threads(), evidence_, findings_, observer_, stop_,
                     seconds_for_depth_use(config_));
  }

  // There is something to train.
  bool trains() const {
    return config_.train && std::ranges::any_of(evidence_, [](const SchemeEvidence& one) { return one.leak.empty(); });
  }

  // Why a scheme is not trained; empty: it sees only what has been said.
  std::string leak_in(const SchemeChoice& scheme) const {
    if (!config_.train) return "";
    ModelConfig model = resolved_.model;
    model.scheme = scheme;
    return leak_of(model, static_cast<double>(config_.base.train.steps)).value_or("");
  }

  // At the depth that is trained, whatever depths were inspected.
  SchemeSummary summary_of(const SchemeChoice& scheme) const {
    ModelConfig model = resolved_.model;
    model.scheme = scheme;
    return summarise_scheme(model);
  }

  // What a step has so many of.
  std::string counted_word() const { return counted_unit(resolved_.model) + "s"; }

  StudyScale scale() const {
    return {.optimiser = std::string(name_of(config_.base.train.optimiser.name)),
            .data = config_.base.data.path.empty() ? config_.base.data.task : config_.base.data.path,
            .width = resolved_.model.width,
            .parameters = schemes_.front().parameters,
            .tokens_per_step = tokens_per_step(resolved_),
            .tuning_seeds = static_cast<int>(config_.seeds.size()),
            .most_seeds = PlannerRules().most_final_seeds,
            .counted = counted_word(),
            .mixed_precision = config_.base.train.precision == Precision::bf16,
            .asked_layers = config_.asked_layers,
            .asked_width = config_.asked_width,
            .most_frequent = most_frequent_share(*source_, static_cast<std::uint64_t>(config_.base.train.data_seed)),
            .why_no_final = why_no_final(),
            .judged_on_tuning_data = rounds_.finals_share_tuning_data(),
            .theory = [this](const SchemeEvidence& one) { return theory_of_question(one); }};
  }

  std::string why_no_final() const {
    if (config_.budget.unit == StudyBudget::Unit::none) return "--budget 3min, or more, ends with one.";
    if (stop_) return "";
    const auto is_final = [](const StagedOutcome& one) { return one.stage == Stage::final; };
    if (std::ranges::any_of(rounds_.outcomes(), is_final)) return "";
    return fmt::format("The budget of {} ended before it; a larger one pays for it.", describe_budget(config_.budget));
  }

  // Beyond what was measured there is only theory.
  std::string theory_of_question(const SchemeEvidence& one) const {
    ModelConfig measured = resolved_.model, asked = measured;
    measured.scheme = asked.scheme =
        *std::ranges::find_if(config_.schemes, [&](const SchemeChoice& s) { return s.asked() == one.scheme; });
    if (config_.asked_layers > 0) asked.layers = config_.asked_layers;
    if (config_.asked_width > 0) asked.width = config_.asked_width;
    if (measured.encoder_layers > 0) asked.encoder_layers = asked.layers;
    try {
      return fmt::format("By theory alone, its amplification at init is {:.3g} there and {:.3g} here.",
                         predict(asked).amplification, predict(measured).amplification);
    } catch (const Error&) {  // no rule covers it
      return "";
    }
  }

  // On the half of the held-out data that the losses in the table are of.
  std::optional<double> guessing() const {
    if (rounds_.state().guessing) return rounds_.state().guessing;
    const double level = guessing_level(*source_, static_cast<std::uint64_t>(config_.base.train.data_seed));
    return std::isfinite(level) ? std::optional(level) : std::nullopt;
  }

  Results describe() {
    Results results = new_results(ResultsKind::study);
    for (const std::string& word : request_.command_line)
      results.command += (results.command.empty() ? "" : " ") + word;
    results.config = print_config(config_.base);
    results.seconds = seconds();
    results.environment = environment_now(request_.command_line);
    results.task =
        TaskFacts{.name = config_.base.data.task, .description = source_->describe(), .optimum = source_->optimum()};
    results.task->unigram = guessing();
    results.task->unit = loss_unit(config_.base.model);
    findings_.schemes = schemes_;
    return describe_study(std::move(results), {.config = config_,
                                               .findings = findings_,
                                               .map = map_.outcomes(),
                                               .grids = map_.grids(),
                                               .evidence = evidence_,
                                               .rounds = rounds_,
                                               .scale = scale()});
  }

  const StudyConfig config_;
  const StudyRequest& request_;
  StudyObserver& observer_;
  const std::atomic<bool>& stop_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::shared_ptr<const Source> source_;
  RunConfig resolved_;  // what the data says is filled in
  RoundPlayer rounds_;
  StudyMap map_;
  std::vector<SchemeSummary> schemes_;
  std::vector<SchemeEvidence> evidence_;
  Findings findings_;
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
