#include "lab/study/describe.h"

#include <fmt/format.h>

#include <algorithm>

namespace norma {
namespace {

void add_extra_rates(const StudyFindings& study, Results& results) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < study.grids.size(); ++i) {
    std::vector<double> extra;
    for (const double rate : study.grids[i]) {
      if (std::ranges::find(study.config.rates, rate) == study.config.rates.end()) extra.push_back(rate);
    }
    if (extra.empty()) continue;
    texts.push_back(fmt::format("{} ({:g})", study.evidence[i].title, fmt::join(extra, ", ")));
    results.extra_rates.push_back({study.config.schemes[i].asked(), std::move(extra), edge_of_best(study.evidence[i])});
  }
  if (texts.empty()) return;
  results.notes.push_back(fmt::format(
      "Rates beyond the grid were tried for schemes whose best rate was at its edge: {}. Sensitivity is over "
      "the rates that all schemes share.",
      fmt::join(texts, ", ")));
}

// Runs of all stages; maps and what belongs to them from the map; the best setting and its loss from the final.
void add_training(const StudyFindings& study, Results& results) {
  add_outcomes(results, study.map, study.config.rates);
  for (RunOutcome& run : results.runs) run.stage = Stage::map;
  for (const StagedOutcome& one : study.rounds.outcomes()) results.runs.emplace_back(one.outcome).stage = one.stage;
  for (Tuned& tuned : results.tuned) {
    const auto evidence = std::ranges::find(study.evidence, tuned.scheme, &SchemeEvidence::scheme);
    if (evidence == study.evidence.end() || !evidence->final || evidence->final->loss.n == 0) continue;
    tuned.lr = evidence->final->lr;
    tuned.warmup = evidence->final->warmup;
    tuned.loss = evidence->final->loss;
    tuned.steps = evidence->final->steps;
    tuned.accuracy = evidence->final->accuracy;
  }
  add_extra_rates(study, results);
}

void add_course(const StudyFindings& study, Results& results) {
  Course course{.budget = print_budget(study.config.budget), .tokens = study.rounds.tokens_planned(), .rounds = {}};
  course.rounds.push_back({.stage = Stage::map,
                           .steps = study.config.base.train.steps,
                           .runs = std::ssize(study.map),
                           .seeds = study.config.seeds,
                           .why = "where each scheme is stable"});
  for (const Round& round : study.rounds.log().rounds) {
    std::vector<std::int64_t> seeds = round.entries[0].seeds;
    for (const RoundEntry& entry : round.entries)
      if (entry.seeds.size() > seeds.size()) seeds = entry.seeds;
    course.rounds.push_back({round.stage, round.steps, round.runs(), std::move(seeds), round.why});
  }
  results.course = std::move(course);
}

void add_comparisons(const StudyFindings& study, Results& results) {
  for (const PairedDifference& pair : final_pairs(study.rounds.state())) {
    results.comparisons.push_back({.a = study.evidence[pair.a].scheme,
                                   .b = study.evidence[pair.b].scheme,
                                   .difference = pair.difference,
                                   .p = pair.p,
                                   .adjusted_p = pair.adjusted_p,
                                   .apart = pair.apart,
                                   .lasting = is_lasting(study.rounds.state(), pair)});
  }
  for (const PairedDifference& pair : right_pairs(study.rounds.state())) {
    for (Comparison& known : results.comparisons) {
      if (known.a == study.evidence[pair.a].scheme && known.b == study.evidence[pair.b].scheme)
        known.right = pair.difference;
    }
  }
}

}  // namespace

void say_accuracy(Results& results, std::optional<double> most_frequent) {
  const std::string without =
      most_frequent ? fmt::format("; the most frequent answer alone has {:.1f} %", 100 * *most_frequent) : "";
  for (const Tuned& tuned : results.tuned) {
    if (!tuned.accuracy) continue;
    const Estimate& share = *tuned.accuracy;
    const auto verdict = std::ranges::find(results.verdicts, tuned.scheme, &Verdict::scheme);
    const bool ranked = std::ranges::find(results.advice.ranking, tuned.scheme) != results.advice.ranking.end();
    if (!ranked || verdict == results.verdicts.end()) continue;
    const std::string words = fmt::format("{:.1f} % of held-out answers are right ({:.1f} to {:.1f})", 100 * share.mean,
                                          100 * share.low, 100 * share.high);
    verdict->words.pop_back();
    verdict->words += fmt::format("; {}.", words);
    verdict->evidence.push_back({"share of right held-out answers", share.mean, share.low, share.high});
    if (tuned.scheme == results.advice.choice) results.advice.words += fmt::format(" With it {}{}.", words, without);
  }
}

void say_more_accurate(Results& results) {
  const auto chosen = std::ranges::find(results.tuned, results.advice.choice, &Tuned::scheme);
  if (chosen == results.tuned.end() || !chosen->accuracy) return;
  const Tuned* best = nullptr;
  Estimate lead = {};
  for (const Tuned& other : results.tuned) {
    const bool ranked = std::ranges::find(results.advice.ranking, other.scheme) != results.advice.ranking.end();
    const std::optional<Estimate> more = more_right(results, other.scheme, chosen->scheme);
    if (!ranked || !other.accuracy || !more || more->low <= 0) continue;
    if (best != nullptr && other.accuracy->mean <= best->accuracy->mean) continue;
    best = &other;
    lead = *more;
  }
  if (best == nullptr) return;
  const auto summary = std::ranges::find(results.schemes, best->scheme, &SchemeSummary::name);
  results.advice.words += fmt::format(
      " By right answers {} is ahead, by {:.1f} points ({:.1f} to {:.1f}): the loss also asks how sure a "
      "model is.",
      summary == results.schemes.end() || summary->title.empty() ? best->scheme : summary->title, 100 * lead.mean,
      100 * lead.low, 100 * lead.high);
}

Results describe_study(Results results, const StudyFindings& study) {
  add_findings(results, study.findings);
  if (!study.map.empty()) {
    add_training(study, results);
    add_course(study, results);
    add_comparisons(study, results);
    if (study.rounds.finals_share_tuning_data())
      results.notes.push_back(
          "There is only one held-out batch, so the final comparison was judged on the data that chose the settings.");
  }
  results.verdicts = judge_schemes(study.evidence);
  results.advice = advise(study.evidence, results.verdicts, study.scale);
  say_accuracy(results, study.scale.most_frequent);
  say_more_accurate(results);
  return results;
}

}  // namespace norma
