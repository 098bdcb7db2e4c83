#include "lab/study/play.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/study/final_losses.h"
#include "lab/study/meter.h"
#include "lab/study/parts.h"
#include "lab/sweep/keys.h"
#include "norma/core/machine.h"
#include "norma/train/data.h"
#include "norma/train/result.h"

namespace norma {
namespace {

constexpr double kPatience = 1.1;  // times what is left: a round is not lost for the last steps of it

// Beyond what seeds and held-out sampling explain.
bool is_below(const LossTable& losses, std::optional<double> optimum) {
  constexpr double kMisses = 1e-3;
  if (losses.size() < 2 || !optimum) return false;
  return crossed_mean(losses).interval(kMisses).high < *optimum - kLearned;
}

// What a round that was cut leaves: of long runs those that had ended; seeds of a comparison count all or not at all.
std::vector<RunOutcome> whole_part(const Round& round, std::vector<RunOutcome> outcomes) {
  if (round.cut && round.stage != Stage::longest) return {};
  if (round.cut)
    std::erase_if(outcomes, [](const RunOutcome& one) {
      return one.status == RunStatus::waiting || one.status == RunStatus::running;
    });
  return outcomes;
}

std::string value_text(const auto& value) { return fmt::format("{}", value); }

// It learned how frequent targets are and nothing else, or no weight has a part in its loss. What ended above that
// level has not come so far yet.
bool guesses(const RunOutcome& outcome) {
  if (!outcome.learned_nothing()) return false;
  if (outcome.loss() <= *outcome.unigram_entropy + kLearned) return true;
  if (outcome.curve.loss.empty()) return false;
  constexpr double kMoved = 1e-5;  // times the loss: beyond what rounding does
  const auto [least, most] = std::ranges::minmax(outcome.curve.loss);
  return most - least <= kMoved * std::abs(most);
}

}  // namespace

void add_points(SweepConfig& sweep, const SchemeChoice& scheme, double lr, std::int64_t warmup,
                const std::vector<std::int64_t>& seeds) {
  for (const std::int64_t seed : seeds) {
    SweepPoint point;
    const auto set = [&](const char* key, const std::string& value) {
      point.emplace_back(key, normal_value(sweep, key, value));
    };
    set("model.scheme", scheme.asked());
    set("train.lr", value_text(lr));
    set("train.warmup", value_text(warmup));
    set("train.seed", value_text(seed));
    set("train.data_seed", value_text(seed));
    sweep.points.push_back(std::move(point));
  }
}

RoundPlayer::RoundPlayer(const StudyConfig& config, const StudyRequest& request, StudyObserver& observer,
                         const std::atomic<bool>& stop)
    : config_(config),
      request_(request),
      observer_(observer),
      stop_(stop),
      diverged_in_final_(config.schemes.size(), 0),
      below_optimum_(config.schemes.size()) {
  for (const SchemeChoice& scheme : config.schemes) names_.push_back(scheme.asked());
}

void RoundPlayer::play(StudyState state, const StudyAccount& before, double map_tokens) {
  state_ = std::move(state);
  state_.finals.assign(names_.size(), {});
  state_.right.assign(names_.size(), {});
  map_tokens_ = map_tokens;
  if (config_.budget.unit == StudyBudget::Unit::none || stop_) return;
  log_ = read_rounds(Folder(request_.directory), print_budget(config_.budget), names_);
  if (is_timed() && log_.before.seconds == 0) {
    log_.before = before;
    save();
  }
  for (std::size_t i = 0; !stop_; ++i) {
    if (i == log_.rounds.size()) {
      const std::optional<Round> next = next_round(state_, tokens_left());
      if (!next) break;
      log_.rounds.push_back(*next);
      save();  // first the decision, then what follows from it
    }
    const std::vector<RunOutcome> outcomes = run_round(log_.rounds[i]);
    if (stop_) break;
    if (outcomes.empty()) continue;  // cut
    add_runs(log_.rounds[i], outcomes);
    if (log_.rounds[i].stage == Stage::final) judge_finals(log_.rounds[i], outcomes);
  }
}

double RoundPlayer::tokens_planned() const {
  double tokens = map_tokens_;
  for (const Round& round : log_.rounds) tokens += round.member_steps() * state_.tokens_per_step;
  return tokens;
}

double RoundPlayer::seconds_per_token() const {
  double seconds = log_.before.training_seconds, tokens = log_.before.tokens_trained;
  for (const Round& round : log_.rounds) {
    seconds += round.seconds;
    tokens += round.tokens_trained;
  }
  return tokens > 0 ? seconds / tokens : 0;
}

double RoundPlayer::tokens_of_budget(double tokens_per_step) const {
  if (config_.budget.unit == StudyBudget::Unit::tokens) return config_.budget.amount;
  return config_.budget.unit == StudyBudget::Unit::steps ? config_.budget.amount * tokens_per_step : 0;
}

double RoundPlayer::tokens_left() const {
  if (config_.budget.unit == StudyBudget::Unit::none) return 0;
  if (!is_timed()) return tokens_of_budget(state_.tokens_per_step) - tokens_planned();
  const double each = seconds_per_token();
  return each > 0 ? seconds_left() / each : 0;
}

double RoundPlayer::seconds_left() const {
  double seconds = seconds_for_training(config_) - log_.before.seconds;
  for (const Round& round : log_.rounds) seconds -= round.seconds;
  return seconds;
}

// Rounds that come after the first comparison can be done without, and are stopped when the time is up: a run that has
// a busy machine for itself takes longer than its share of many.
std::optional<std::chrono::steady_clock::time_point> RoundPlayer::end_of(const Round& round) const {
  const bool needed = round.stage != Stage::longest && !has_final_before(round);
  if (!is_timed() || needed) return std::nullopt;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(kPatience * std::max(seconds_left(), 0.0)));
}

bool RoundPlayer::has_final_before(const Round& round) const {
  return std::ranges::any_of(
      log_.rounds, [&](const Round& other) { return &other != &round && other.stage == Stage::final && other.ended; });
}

SweepConfig RoundPlayer::sweep_of(const Round& round) const {
  constexpr std::int64_t kPointsOfCurve = 200;
  SweepConfig sweep{.base = config_.base};
  sweep.base.train.steps = round.steps;
  sweep.base.train.log_every = std::max(sweep.base.train.log_every, round.steps / kPointsOfCurve);
  for (const SchemeChoice& scheme : config_.schemes) sweep.schemes.put(scheme);
  for (const RoundEntry& entry : round.entries)
    add_points(sweep, config_.schemes[entry.scheme], entry.lr, entry.warmup, entry.seeds);
  return sweep;
}

// A round that has ended is only read: to its sweep a cohort of a later round in the same folder, cut short by a kill,
// would be one that nobody asks for.
std::vector<RunOutcome> RoundPlayer::run_round(Round& round) {
  const SweepConfig sweep = sweep_of(round);
  const std::filesystem::path directory = request_.directory / "rounds" / round.folder();
  if (round.ended) {
    std::vector<RunOutcome> outcomes = read_outcomes(sweep, directory);
    if (round.cut) return whole_part(round, std::move(outcomes));
    if (std::ranges::none_of(outcomes, [](const RunOutcome& one) { return one.status == RunStatus::waiting; }))
      return outcomes;
  }
  observer_.said(fmt::format("{} of {} steps: {}", name_of(round.stage), round.steps, round.why));
  const double own = round.member_steps() * state_.tokens_per_step;
  SweepMeter meter(observer_, std::string(name_of(round.stage)),
                   {.before = tokens_planned() - own,
                    .own = own,
                    .all = tokens_of_budget(state_.tokens_per_step),
                    .counted = state_.counted});
  const SweepResult result = run_sweep({.config = sweep,
                                        .directory = directory,
                                        .command_line = request_.command_line,
                                        .weights = round.stage == Stage::final ? KeepWeights::yes : KeepWeights::no,
                                        .scores = false,
                                        .until = end_of(round)},
                                       meter, stop_);
  const bool cut = result.interrupted && !stop_;
  if (!result.interrupted) meter.report();
  if (cut) {
    observer_.said(fmt::format("{} of {} steps: stopped, the time is up", name_of(round.stage), round.steps));
    round.cut = true;
    round.why += "; stopped when the time was up";
  }
  if ((!result.interrupted || cut) && !round.ended) {
    round.ended = true;
    if (is_timed()) {
      round.seconds = meter.seconds();
      round.tokens_trained = meter.tokens();
    }
    save();
  }
  return whole_part(round, result.outcomes);
}

void RoundPlayer::add_runs(const Round& round, const std::vector<RunOutcome>& outcomes) {
  PlayedRound played{.round = round};
  for (const RunOutcome& outcome : outcomes) {
    const auto scheme = static_cast<std::size_t>(std::ranges::find(names_, outcome.scheme) - names_.begin());
    played.runs.push_back({.scheme = scheme,
                           .lr = outcome.lr,
                           .warmup = outcome.warmup,
                           .seed = outcome.seed,
                           .diverged = outcome.diverged() || outcome.faulty(),  // out of the race either way
                           .learned = !outcome.diverged() && !outcome.faulty() && !outcome.learned_nothing(),
                           .guesses = guesses(outcome),
                           .loss = outcome.loss()});
    outcomes_.push_back({round.stage, outcome, request_.directory / "rounds" / round.folder() / "runs" / outcome.id});
  }
  state_.played.push_back(std::move(played));
}

// On the other half of the held-out data. A scheme of which a seed diverged is out of the comparison.
void RoundPlayer::judge_finals(const Round& round, const std::vector<RunOutcome>& outcomes) {
  RunConfig config = config_.base;
  config.data.held_out = "odd";
  std::shared_ptr<const Source> source = open_data(config);
  if (source->evaluation_batches() == 0) {  // a single batch is all there is
    shared_data_ = true;
    source = open_data(config_.base);
  }
  std::vector<FinalRun> runs;
  for (const RunOutcome& outcome : outcomes) {
    if (outcome.diverged()) continue;
    runs.push_back({request_.directory / "rounds" / round.folder() / "runs" / outcome.id,
                    static_cast<double>(outcome.last_step), static_cast<double>(outcome.steps)});
  }
  const std::int64_t asked = config_.base.train.threads;
  const FinalScores scores = final_scores(runs, source, asked > 0 ? static_cast<int>(asked) : machine().cores,
                                          [this] { return stop_.load(); });
  if (stop_) return;
  if (const double level = guessing_level(*source, static_cast<std::uint64_t>(config_.base.train.data_seed));
      std::isfinite(level))
    state_.guessing = level;  // on the data that judge
  std::size_t next = 0;
  for (const RunOutcome& outcome : outcomes) {  // in the order of the round: by scheme, then by seed
    const auto scheme = static_cast<std::size_t>(std::ranges::find(names_, outcome.scheme) - names_.begin());
    if (outcome.diverged()) {
      diverged_in_final_[scheme] = 1;
    } else {
      state_.finals[scheme].push_back(scores.losses[next]);
      if (!scores.right[next].empty()) state_.right[scheme].push_back(scores.right[next]);
      ++next;
    }
  }
  for (std::size_t scheme = 0; scheme < names_.size(); ++scheme) {
    if (is_below(state_.finals[scheme], source->optimum())) below_optimum_[scheme] = source->optimum();
    if (diverged_in_final_[scheme] != 0 || below_optimum_[scheme]) {
      state_.finals[scheme].clear();
      state_.right[scheme].clear();
    }
  }
}

void RoundPlayer::save() { write_rounds(Folder(request_.directory), log_, names_); }

}  // namespace norma
