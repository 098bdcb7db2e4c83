#include "lab/study/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace norma {
namespace {

constexpr double kSmallestRate = 1e-12, kLargestRate = 1e6;  // beyond them a run is not worth its time
constexpr double kWarmupHelps = 0.05;                        // nats between the best loss with and without warmup

std::string loss_text(const Estimate& loss) {
  return loss.n > 1 ? fmt::format("{:.3f} ({:.3f} to {:.3f})", loss.mean, loss.low, loss.high)
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

// Where nothing trains: the lowest loss among cells without divergence; null when every cell has some.
const TrainedCell* least_bad_cell(const SchemeEvidence& evidence) {
  const TrainedCell* best = nullptr;
  for (const TrainedCell& cell : evidence.cells) {
    if (cell.diverged > 0 || cell.loss.n == 0) continue;
    if (best == nullptr || cell.loss.mean < best->loss.mean) best = &cell;
  }
  return best;
}

bool has_warmup(const SchemeEvidence& evidence, bool warmup) {
  return std::any_of(evidence.cells.begin(), evidence.cells.end(),
                     [&](const TrainedCell& cell) { return (cell.warmup > 0) == warmup; });
}

// What these seeds settle about a law, and nothing else. Empty where nothing is known.
std::string law_text(std::string_view what, std::string_view of, const DepthLaw& law) {
  constexpr double kFlat = 0.1, kFlatInterval = 0.25;
  if (law.zero) return fmt::format("{} is exactly 0", what);
  if (!law.exponent) return {};
  const Exponent& found = *law.exponent;
  std::vector<std::string> beside;
  if (found.high > found.low) beside.push_back(fmt::format("{:.2f} to {:.2f}", found.low, found.high));
  if (law.theory) beside.push_back(fmt::format("theory {:.2f}", *law.theory));
  const std::string brackets = beside.empty() ? "" : fmt::format(" ({})", fmt::join(beside, ", "));
  const std::string power = fmt::format("{}^{:.2f}{}", of, found.value, brackets);
  if (std::abs(found.value) < kFlat && found.low > -kFlatInterval && found.high < kFlatInterval)
    return fmt::format("{} does not change with depth, {}", what, power);
  if (found.low > 0 || found.high < 0)
    return fmt::format("{} {} with depth as {}", what, found.value > 0 ? "grows" : "shrinks", power);
  return fmt::format("how {} changes with depth is not settled, {}", what, power);
}

void add_law(Verdict& verdict, std::string_view text, const DepthLaw& law) {
  if (law.exponent)
    verdict.evidence.push_back({std::string(text), law.exponent->value, law.exponent->low, law.exponent->high});
}

std::string training_words(const SchemeEvidence& evidence, Judgement& verdict) {
  if (evidence.cells.empty()) {
    verdict = Judgement::untested;
    return "was not trained";
  }
  const TrainedCell *best = best_cell(evidence), *without = best_cell(evidence, false),
                    *with = best_cell(evidence, true);
  const bool both = has_warmup(evidence, true) && has_warmup(evidence, false);
  if (best == nullptr) {
    verdict = Judgement::does_not_train;
    int diverged = 0, stuck = 0, runs = 0;
    for (const TrainedCell& cell : evidence.cells) {
      diverged += cell.diverged;
      stuck += cell.not_learned;
      runs += cell.runs;
    }
    return fmt::format(
        "does not train at {} layers {}{} (of {} runs {} diverged and {} never got below guessing by frequency)",
        evidence.layers, rates_text(evidence), both ? ", with or without warmup" : "", runs, diverged, stuck);
  }
  std::string words =
      fmt::format("reaches {} at {:g}{}", loss_text(best->loss), best->lr,
                  best->warmup > 0 ? fmt::format(" with {} steps of warmup", best->warmup) : " without warmup");
  if (const RateEdge edge = edge_of_best(evidence); edge != RateEdge::none)
    words += fmt::format(", the {} rate tried", name_of(edge));
  const auto shared =
      std::count_if(evidence.cells.begin(), evidence.cells.end(), [](const TrainedCell& cell) { return !cell.extra; });
  const auto training = std::count_if(evidence.cells.begin(), evidence.cells.end(),
                                      [](const TrainedCell& cell) { return !cell.extra && cell.trains(); });
  verdict = Judgement::stable;
  if (both && without == nullptr) {
    verdict = Judgement::needs_warmup;
    words += "; without warmup no tried rate trains";
  } else if (both && with != nullptr && without->loss.mean > with->loss.mean + kWarmupHelps &&
             without->loss.low > with->loss.high) {
    verdict = Judgement::needs_warmup;
    words += fmt::format("; without warmup at best {}", loss_text(without->loss));
  } else if (training * 2 < shared) {
    verdict = Judgement::narrow;
  }
  const bool wider = shared < static_cast<std::ptrdiff_t>(evidence.cells.size());
  words +=
      fmt::format("; trains in {} of {} {}", training, shared, wider ? "settings that all share" : "tried settings");
  return words;
}

}  // namespace

const TrainedCell* best_cell(const SchemeEvidence& evidence) {
  const TrainedCell* best = nullptr;
  for (const TrainedCell& cell : evidence.cells) {
    if (cell.trains() && (best == nullptr || cell.loss.mean < best->loss.mean)) best = &cell;
  }
  return best;
}

const TrainedCell* best_cell(const SchemeEvidence& evidence, bool with_warmup) {
  const TrainedCell* best = nullptr;
  for (const TrainedCell& cell : evidence.cells) {
    if (!cell.trains() || (cell.warmup > 0) != with_warmup) continue;
    if (best == nullptr || cell.loss.mean < best->loss.mean) best = &cell;
  }
  return best;
}

RateEdge edge_of_best(const SchemeEvidence& evidence) {
  if (evidence.cells.empty()) return RateEdge::none;
  const auto [low, high] = std::minmax_element(evidence.cells.begin(), evidence.cells.end(),
                                               [](const TrainedCell& a, const TrainedCell& b) { return a.lr < b.lr; });
  if (low->lr == high->lr) return RateEdge::none;
  const TrainedCell* best = best_cell(evidence) != nullptr ? best_cell(evidence) : least_bad_cell(evidence);
  if (best == nullptr) return RateEdge::smallest;
  return best->lr == high->lr ? RateEdge::largest : best->lr == low->lr ? RateEdge::smallest : RateEdge::none;
}

std::optional<double> rate_beyond(const std::vector<double>& rates, RateEdge edge) {
  if (edge == RateEdge::none || rates.size() < 2) return std::nullopt;
  const bool up = edge == RateEdge::largest;
  const auto inwards = [&](std::size_t i) { return up ? rates[rates.size() - 1 - i] : rates[i]; };
  // The ratio before the last one: grids such as 1, 3, 10, 30 alternate between two.
  const double ratio = rates.size() > 2 ? inwards(1) / inwards(2) : inwards(0) / inwards(1);
  for (const int digits : {2, 6}) {  // 0.033 is as good as 0.0333333, unless the grid is that fine
    const double rate = std::stod(fmt::format("{:.{}g}", inwards(0) * ratio, digits));
    if (up ? rate > inwards(0) && rate <= kLargestRate : rate < inwards(0) && rate > kSmallestRate) return rate;
  }
  return std::nullopt;
}

std::vector<Verdict> judge_schemes(const std::vector<SchemeEvidence>& all) {
  std::vector<Verdict> verdicts;
  std::map<std::string, double> losses;
  for (const SchemeEvidence& evidence : all) {
    Verdict verdict{.scheme = evidence.scheme};
    std::vector<std::string> parts = {training_words(evidence, verdict.verdict)};
    if (const TrainedCell* best = best_cell(evidence)) {
      losses[evidence.scheme] = best->loss.mean;
      verdict.evidence.push_back(
          {fmt::format("held-out loss at lr {:g}, warmup {}, {} seeds", best->lr, best->warmup, best->loss.n),
           best->loss.mean, best->loss.low, best->loss.high});
    }
    if (evidence.effective_depth) {
      const Estimate& depth = *evidence.effective_depth;
      parts.push_back(fmt::format("uses {:.1f} of its {} {}layers ({:.1f} to {:.1f})", depth.mean, evidence.layers,
                                  evidence.stack, depth.low, depth.high));
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
  std::stable_sort(verdicts.begin(), verdicts.end(), [&](const Verdict& a, const Verdict& b) {
    const auto key = [&](const Verdict& v) {
      const auto found = losses.find(v.scheme);
      return found == losses.end() ? std::numeric_limits<double>::infinity() : found->second;
    };
    return key(a) < key(b);
  });
  for (std::size_t i = 0; i < verdicts.size(); ++i) verdicts[i].rank = static_cast<int>(i) + 1;
  return verdicts;
}

}  // namespace norma
