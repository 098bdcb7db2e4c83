#include "lab/study/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace norma {
namespace {

constexpr double kWarmupHelps = 0.05;  // nats between the best loss with and without warmup

std::string loss_text(const Estimate& loss) {
  return loss.n > 1 ? fmt::format("{:.3f} ({:.3f} to {:.3f})", loss.mean, std::max(loss.low, 0.0), loss.high)
                    : fmt::format("{:.3f}", loss.mean);
}

std::string rates_text(const SchemeEvidence& evidence) {
  double low = evidence.cells.front().lr, high = low;
  for (const TrainedCell& cell : evidence.cells) {
    low = std::min(low, cell.lr);
    high = std::max(high, cell.lr);
  }
  return low == high ? fmt::format("at {:g}", low) : fmt::format("at any tried rate from {:g} to {:g}", low, high);
}

std::string warmup_text(std::int64_t warmup) {
  return warmup > 0 ? fmt::format(" with {} steps of warmup", warmup) : " without warmup";
}

bool has_warmup(const SchemeEvidence& evidence, bool warmup) {
  return std::any_of(evidence.cells.begin(), evidence.cells.end(),
                     [&](const TrainedCell& cell) { return (cell.warmup > 0) == warmup; });
}

// What these seeds settle about a law, and nothing else. Empty where nothing is known.
std::string law_text(std::string_view what, std::string_view of, const DepthLaw& law) {
  if (law.zero) return fmt::format("{} is exactly 0", what);
  if (!law.exponent) return {};
  const Exponent& found = *law.exponent;
  std::vector<std::string> beside;
  if (found.high > found.low) beside.push_back(fmt::format("{:.2f} to {:.2f}", found.low, found.high));
  if (law.theory) beside.push_back(fmt::format("theory {:.2f}", *law.theory));
  const std::string brackets = beside.empty() ? "" : fmt::format(" ({})", fmt::join(beside, ", "));
  const std::string power = fmt::format("{}^{:.2f}{}", of, found.value, brackets);
  switch (trend_of(found)) {
    case Trend::level: return fmt::format("{} does not change with depth, {}", what, power);
    case Trend::grows: return fmt::format("{} grows with depth as {}", what, power);
    case Trend::falls: return fmt::format("{} shrinks with depth as {}", what, power);
    case Trend::open: break;
  }
  return fmt::format("how {} changes with depth is not settled, {}", what, power);
}

void add_law(Verdict& verdict, std::string_view text, const DepthLaw& law) {
  if (law.exponent)
    verdict.evidence.push_back({std::string(text), law.exponent->value, law.exponent->low, law.exponent->high});
}

// The best cell without warmup is worse than the best with it, at every seed where these are known.
bool warmup_helps(const TrainedCell& without, const TrainedCell& with) {
  if (!without.losses.empty() && without.losses.size() == with.losses.size()) {
    for (std::size_t seed = 0; seed < with.losses.size(); ++seed) {
      if (!(without.losses[seed] > with.losses[seed] + kWarmupHelps)) return false;
    }
    return true;
  }
  return without.loss.mean > with.loss.mean + kWarmupHelps && without.loss.low > with.loss.high;
}

// Where it trains in the map.
std::string map_words(const SchemeEvidence& evidence, Judgement& verdict) {
  const TrainedCell *best = best_cell(evidence), *without = best_cell(evidence, false),
                    *with = best_cell(evidence, true);
  const bool both = has_warmup(evidence, true) && has_warmup(evidence, false);
  const auto shared =
      std::count_if(evidence.cells.begin(), evidence.cells.end(), [](const TrainedCell& cell) { return !cell.extra; });
  const auto training = std::count_if(evidence.cells.begin(), evidence.cells.end(),
                                      [](const TrainedCell& cell) { return !cell.extra && cell.trains(); });
  const bool starts = best != nullptr || least_bad_cell(evidence) == nullptr;
  // What the final compares without any is not said to need it.
  const bool compared_without = evidence.final && evidence.final->warmup == 0;
  std::string words;
  bool needed = false;
  if (best != nullptr && both && without == nullptr) {
    needed = true;
    words += "; in short runs no rate trains without warmup";
  } else if (best != nullptr && both && with != nullptr && warmup_helps(*without, *with)) {
    needed = true;
    // Both of the same short runs: the final is another length, other seeds and other data.
    words +=
        fmt::format("; short runs reach {:.3f} with warmup and {:.3f} without", with->loss.mean, without->loss.mean);
  }
  verdict = needed && !compared_without ? Judgement::needs_warmup
            : !starts                   ? Judgement::starts_late
            : training * 2 < shared     ? Judgement::narrow
                                        : Judgement::stable;
  const bool wider = shared < static_cast<std::ptrdiff_t>(evidence.cells.size());
  const std::string steps = evidence.map_steps > 0 ? fmt::format(", in runs of {} steps", evidence.map_steps) : "";
  return words + fmt::format("; trains in {} of the {} settings {}{}",
                             best == nullptr ? "none" : fmt::to_string(training), shared,
                             wider ? "that all schemes share" : "tried", steps);
}

std::string final_words(const FinalEvidence& final, Judgement& verdict) {
  if (final.loss.n == 0) {
    verdict = Judgement::narrow;
    return fmt::format("at {:g} {} of {} fresh seeds diverged within {} steps, though none of those that chose it",
                       final.lr, final.diverged, final.seeds, final.steps);
  }
  std::string words = fmt::format("reaches {} after {} steps at {:g}{}", loss_text(final.loss), final.steps, final.lr,
                                  warmup_text(final.warmup));
  if (final.falls) words += ", still falling";
  if (!final.tied_with.empty())
    words += fmt::format(", which these runs cannot distinguish from {}", fmt::join(final.tied_with, ", "));
  if (!final.ahead_for_now.empty())
    words += fmt::format(", ahead of {} at this length, which longer runs may turn around",
                         fmt::join(final.ahead_for_now, ", "));
  return words;
}

// What it takes where nothing in the map or a race trains.
std::string failing_words(const SchemeEvidence& evidence, Training training, Judgement& verdict) {
  int diverged = 0, stuck = 0, runs = 0;
  for (const TrainedCell& cell : evidence.cells) {
    diverged += cell.diverged;
    stuck += cell.not_learned;
    runs += cell.runs;
  }
  const std::string layers = layers_text(evidence.layers);
  const std::string where = fmt::format("at {} {}", layers, rates_text(evidence));
  const std::string counts =
      fmt::format("of {} short runs {} diverged and {} ended no better than guessing", runs, diverged, stuck);
  if (training == Training::late) {
    verdict = Judgement::starts_late;
    return fmt::format("is at guessing level after {} steps, but reaches {:.3f} after {} ({})", evidence.map_steps,
                       evidence.late_loss, evidence.long_steps, counts);
  }
  if (training == Training::stuck) {
    verdict = Judgement::does_not_train;
    return fmt::format("does not train at {}: after {} steps at {:g} it still does no better than guessing ({})",
                       layers, evidence.long_steps, fmt::join(evidence.rates_at_guessing, " and "), counts);
  }
  if (training == Training::diverges) {
    verdict = Judgement::diverges;
    if (diverges_at_once(evidence))
      return fmt::format("diverges at {} in its first step, before any update, so at any rate ({})", layers, counts);
    return fmt::format("diverges {} ({}); smaller rates were not tried", where, counts);
  }
  verdict = Judgement::unclear;
  std::string more;
  if (!evidence.rates_above_guessing.empty())
    more += fmt::format("; after {} steps at {:g} it was still above guessing level", evidence.long_steps,
                        fmt::join(evidence.rates_above_guessing, ", "));
  if (!evidence.budget_to_tell.empty()) more += fmt::format("; {} would tell", evidence.budget_to_tell);
  return fmt::format("not enough training to tell {} ({}){}", where, counts, more);
}

std::string training_words(const SchemeEvidence& evidence, Judgement& verdict) {
  if (!evidence.leak.empty()) {
    verdict = Judgement::leaks;
    return fmt::format("leaks: {}; it was not trained, and is not ranked", evidence.leak);
  }
  if (evidence.below_optimum) {
    verdict = Judgement::below_optimum;
    return fmt::format(
        "ends below {:.3f}, the optimum of the task, which no model can: an error of the setting, not a win; it is not "
        "ranked",
        *evidence.below_optimum);
  }
  const Training training = training_of(evidence);
  if (training == Training::untested) {
    verdict = Judgement::untested;
    return "was not trained";
  }
  if (training != Training::trains) return failing_words(evidence, training, verdict);
  const std::string map = map_words(evidence, verdict);
  if (evidence.final) return final_words(*evidence.final, verdict) + map;
  const TrainedCell* best = best_cell(evidence);
  if (best == nullptr) return "trains in longer runs alone, and was in no final" + map;
  std::string words = fmt::format("reaches {} after {} steps at {:g}{}", loss_text(best->loss), evidence.map_steps,
                                  best->lr, warmup_text(best->warmup));
  if (const RateEdge edge = edge_of_best(evidence); edge != RateEdge::none)
    words += fmt::format(", the {} rate tried", name_of(edge));
  return words + map;
}

void add_loss(Verdict& verdict, const SchemeEvidence& evidence) {
  if (evidence.faulty()) return;
  if (evidence.final && evidence.final->loss.n > 0) {
    const FinalEvidence& final = *evidence.final;
    verdict.evidence.push_back({fmt::format("held-out loss after {} steps at lr {:g}, warmup {}, {} fresh seeds",
                                            final.steps, final.lr, final.warmup, final.seeds),
                                final.loss.mean, final.loss.low, final.loss.high});
  } else if (const TrainedCell* best = best_cell(evidence)) {
    verdict.evidence.push_back(
        {fmt::format("held-out loss at lr {:g}, warmup {}, {} seeds", best->lr, best->warmup, best->loss.n),
         best->loss.mean, best->loss.low, best->loss.high});
  }
}

// Finals first, then maps, then what does not train, then what does not count; by loss among themselves.
std::pair<int, double> place_of(const SchemeEvidence& evidence) {
  if (evidence.faulty()) return {3, 0};
  if (evidence.final && evidence.final->loss.n > 0) return {0, evidence.final->loss.mean};
  if (const TrainedCell* best = best_cell(evidence)) return {1, best->loss.mean};
  return {2, 0};
}

}  // namespace

std::string layers_text(std::int64_t layers, std::string_view stack) {
  return fmt::format("{} {}layer{}", layers, stack, layers == 1 ? "" : "s");
}

std::vector<Verdict> judge_schemes(const std::vector<SchemeEvidence>& all) {
  std::vector<Verdict> verdicts;
  std::map<std::string, std::pair<int, double>> places;
  for (const SchemeEvidence& evidence : all) {
    Verdict verdict{.scheme = evidence.scheme};
    std::vector<std::string> parts = {training_words(evidence, verdict.verdict)};
    places[evidence.scheme] = place_of(evidence);
    add_loss(verdict, evidence);
    if (evidence.effective_depth) {
      const Estimate& depth = *evidence.effective_depth;
      const std::string interval =
          depth.high - depth.low >= 0.05 ? fmt::format(" ({:.1f} to {:.1f})", depth.low, depth.high) : "";
      parts.push_back(fmt::format("uses {:.1f} of its {}{} for what it learned", depth.mean,
                                  layers_text(evidence.depth_layers, evidence.stack), interval));
      verdict.evidence.push_back({"effective depth after training", depth.mean, depth.low, depth.high});
    }
    for (std::string words : {law_text("the gradient of the last layer at init", "L", evidence.gradient),
                              law_text("amplification", "N", evidence.amplification)}) {
      if (!words.empty()) parts.push_back(std::move(words));
    }
    add_law(verdict, "exponent of the last layer's gradient in L", evidence.gradient);
    add_law(verdict, "exponent of amplification in the number of sublayers", evidence.amplification);
    add_law(verdict, "exponent of the stream's rms along the layers", evidence.stream);
    verdict.words = fmt::format("{}: {}.", evidence.title, fmt::join(parts, "; "));
    verdicts.push_back(std::move(verdict));
  }
  std::stable_sort(verdicts.begin(), verdicts.end(),
                   [&](const Verdict& a, const Verdict& b) { return places.at(a.scheme) < places.at(b.scheme); });
  for (std::size_t i = 0; i < verdicts.size(); ++i)
    verdicts[i].rank = places.at(verdicts[i].scheme).first == 3 ? 0 : static_cast<int>(i) + 1;
  return verdicts;
}

}  // namespace norma
