#include "lab/study/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lab/json_parts.h"

namespace norma {
namespace {

using nlohmann::ordered_json;

void add_extra_rates(const StudyFindings& study, ordered_json& all) {
  all["extra_rates"] = ordered_json::array();
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < study.grids.size(); ++i) {
    std::vector<double> extra;
    for (const double rate : study.grids[i]) {
      if (std::ranges::find(study.config.rates, rate) == study.config.rates.end()) extra.push_back(rate);
    }
    if (extra.empty()) continue;
    all["extra_rates"].push_back({{"scheme", study.config.schemes[i].asked()},
                                  {"lr", extra},
                                  {"edge", name_of(edge_of_best(study.evidence[i]))}});
    texts.push_back(fmt::format("{} ({:g})", study.evidence[i].title, fmt::join(extra, ", ")));
  }
  if (texts.empty()) return;
  all["notes"].push_back(fmt::format(
      "Rates beyond the grid were tried for schemes whose best rate was at its edge: {}. Sensitivity is over "
      "the rates that all schemes share.",
      fmt::join(texts, ", ")));
}

ordered_json sweep_part(const StudyFindings& study, const Outcomes& outcomes) {
  return ordered_json::parse(sweep_results_json(outcomes, {.config = "",
                                                           .command = study.provenance.command,
                                                           .task = study.config.base.data.task,
                                                           .seconds = study.provenance.seconds,
                                                           .sensitivity_rates = study.config.rates}));
}

// Runs of all stages; maps and what belongs to them from the map; the best setting and its loss from the final.
void add_training(const StudyFindings& study, ordered_json& all) {
  const ordered_json map = sweep_part(study, study.map);
  for (const char* key : {"maps", "tuned"}) {
    if (map.contains(key)) all[key] = map[key];
  }
  all["runs"] = ordered_json::array();
  const auto add_runs = [&](const ordered_json& runs, std::string_view stage, std::int64_t steps) {
    for (ordered_json run : runs) {
      run["stage"] = stage;
      run["steps"] = steps;
      all["runs"].push_back(std::move(run));
    }
  };
  add_runs(map["runs"], "map", study.config.base.train.steps);
  for (const StagedOutcome& one : study.rounds.outcomes())
    add_runs(sweep_part(study, {one.outcome})["runs"], name_of(one.stage), one.outcome.steps);
  for (ordered_json& tuned : all["tuned"]) {
    const auto evidence =
        std::ranges::find(study.evidence, tuned["scheme"].get<std::string>(), &SchemeEvidence::scheme);
    if (evidence == study.evidence.end() || !evidence->final || evidence->final->loss.n == 0) continue;
    tuned["lr"] = evidence->final->lr;
    tuned["warmup"] = evidence->final->warmup;
    tuned["loss"] = estimate(evidence->final->loss);
    tuned["steps"] = evidence->final->steps;
  }
  add_extra_rates(study, all);
}

void add_course(const StudyFindings& study, ordered_json& all) {
  const StudyLog& log = study.rounds.log();
  ordered_json rounds = ordered_json::array();
  rounds.push_back({{"stage", "map"},
                    {"steps", study.config.base.train.steps},
                    {"runs", study.map.size()},
                    {"seeds", study.config.seeds},
                    {"why", "where each scheme is stable"}});
  for (const Round& round : log.rounds) {
    std::vector<std::int64_t> seeds = round.entries[0].seeds;
    for (const RoundEntry& entry : round.entries)
      if (entry.seeds.size() > seeds.size()) seeds = entry.seeds;
    rounds.push_back({{"stage", name_of(round.stage)},
                      {"steps", round.steps},
                      {"runs", round.runs()},
                      {"seeds", seeds},
                      {"why", round.why}});
  }
  all["course"] = {
      {"budget", print_budget(study.config.budget)}, {"tokens", study.rounds.tokens_planned()}, {"rounds", rounds}};
}

void add_comparisons(const StudyFindings& study, ordered_json& all) {
  all["comparisons"] = ordered_json::array();
  for (const PairedDifference& pair : final_pairs(study.rounds.state())) {
    all["comparisons"].push_back({{"a", study.evidence[pair.a].scheme},
                                  {"b", study.evidence[pair.b].scheme},
                                  {"difference", estimate(pair.difference)},
                                  {"p", json_number(pair.p)},
                                  {"adjusted_p", json_number(pair.adjusted_p)},
                                  {"apart", pair.apart}});
  }
}

void add_verdicts(const StudyFindings& study, ordered_json& all) {
  const std::vector<Verdict> verdicts = judge_schemes(study.evidence);
  all["verdicts"] = ordered_json::array();
  for (const Verdict& verdict : verdicts) {
    ordered_json items = ordered_json::array();
    for (const EvidenceItem& item : verdict.evidence)
      items.push_back({{"text", item.text}, {"value", item.value}, {"low", item.low}, {"high", item.high}});
    all["verdicts"].push_back({{"scheme", verdict.scheme},
                               {"rank", verdict.rank},
                               {"verdict", verdict.verdict},
                               {"words", verdict.words},
                               {"evidence", items}});
  }
  const Advice advice = advise(study.evidence, verdicts, study.scale);
  all["advice"] = {{"words", advice.words},
                   {"ranking", advice.ranking},
                   {"confidence", advice.confidence},
                   {"not_tested", advice.not_tested}};
}

}  // namespace

std::string describe_study(const StudyFindings& study) {
  ordered_json all = ordered_json::parse(results_json(study.findings, study.provenance));
  all["task"]["unigram"] = study.unigram;
  if (!study.map.empty()) {
    add_training(study, all);
    add_course(study, all);
    add_comparisons(study, all);
    if (study.rounds.finals_share_tuning_data())
      all["notes"].push_back(
          "There is only one held-out batch, so the final comparison was judged on the data that chose the settings.");
  }
  add_verdicts(study, all);
  return all.dump(1) + "\n";
}

}  // namespace norma
