#include "report/page/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <map>

#include "report/figures/axis.h"
#include "report/figures/init.h"
#include "report/figures/parts.h"

namespace norma {
namespace {

const Tuned* tuned_of(const Results& results, const std::string& scheme) {
  const Tuned* found = nullptr;
  for (const Tuned& one : results.tuned) {
    if (one.scheme == scheme && (found == nullptr || one.layers > found->layers)) found = &one;
  }
  return found;
}

// Settings of a map, those in which a seed diverged, and those that stayed at guessing level.
struct Cells {
  int all = 0, diverged = 0, learned = 0;
};

Cells cells_of(const Results& results, const std::string& scheme) {
  Cells cells;
  const double guessing = guessing_of(results).value_or(1e300);
  for (const StabilityMap& map : results.maps) {
    if (map.scheme != scheme || map.y_name != "warmup") continue;
    for (std::size_t row = 0; row < map.loss.size(); ++row) {
      for (std::size_t i = 0; i < map.loss[row].size(); ++i) {
        const double lost = row < map.diverged.size() && i < map.diverged[row].size() ? map.diverged[row][i] : 0;
        if (map.loss[row][i].n < 1 && !(lost > 0)) continue;
        ++cells.all;
        cells.diverged += lost > 0;
        cells.learned += !(lost > 0) && map.loss[row][i].mean <= guessing - kLearned;
      }
    }
  }
  return cells;
}

// The same of a study, as its verdicts count: the settings that all schemes share, in which every seed learned.
std::optional<Cells> shared_cells(const Results& results, const std::string& scheme) {
  std::map<std::pair<double, std::int64_t>, bool> trains;
  const auto extra = std::ranges::find(results.extra_rates, scheme, &ExtraRates::scheme);
  for (const RunOutcome& run : results.runs) {
    if (run.scheme != scheme || run.stage != Stage::map || !run.outcome) continue;
    if (extra != results.extra_rates.end() && std::ranges::find(extra->lr, run.lr) != extra->lr.end()) continue;
    bool& all = trains.try_emplace({run.lr, run.warmup}, true).first->second;
    all = all && !run.diverged() && !run.faulty() && *run.outcome != Outcome::did_not_learn;
  }
  if (trains.empty()) return std::nullopt;
  return Cells{.all = static_cast<int>(trains.size()),
               .learned = static_cast<int>(std::ranges::count_if(trains, [](const auto& one) { return one.second; }))};
}

std::string not_trained(Judgement verdict) {
  switch (verdict) {
    case Judgement::does_not_train: return "Stayed at guessing level, also in a long run.";
    case Judgement::diverges: return "Diverged at every rate tried.";
    case Judgement::unclear:
      return "Not enough training to tell: at guessing level after the runs that the budget paid for.";
    case Judgement::untested: return "Was not trained.";
    case Judgement::leaks: return "Sees what it is to predict: not trained, not ranked.";
    case Judgement::below_optimum: return "Ended below the optimum, which no model can: an error of the setting.";
    default: return "";
  }
}

std::string power_text(const Series& series) { return draw::exponent_text(series.exponent->value); }

// "A (exponent 0.5) and B (1.0)".
std::string with_powers(const std::vector<const Series*>& group, const Cast& cast) {
  std::vector<std::string> items;
  for (const Series* one : group)
    items.push_back(
        fmt::format("{} ({}{})", cast.of(one->scheme).label, items.empty() ? "exponent " : "", power_text(*one)));
  return listed(items);
}

}  // namespace

std::pair<std::string, std::string> first_sentence(std::string_view text) {
  for (std::size_t at = text.find(". "); at != std::string_view::npos; at = text.find(". ", at + 1)) {
    if (at + 2 < text.size() && std::isupper(static_cast<unsigned char>(text[at + 2])) != 0)
      return {std::string(text.substr(0, at + 1)), std::string(text.substr(at + 2))};
  }
  return {std::string(text), ""};
}

std::string scheme_sentence(const Results& results, const std::string& scheme) {
  const Verdict* verdict = verdict_of(results, scheme);
  if (verdict != nullptr && verdict->rank < 1) {
    std::string words = first_sentence(verdict->words).first;  // the name stands before it
    const auto summary = std::ranges::find(results.schemes, scheme, &SchemeSummary::name);
    if (summary != results.schemes.end() && words.starts_with(summary->title + ": ")) {
      words.erase(0, summary->title.size() + 2);
      words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
    }
    return words;
  }
  if (verdict != nullptr && verdict->verdict == Judgement::starts_late) {
    // "is at guessing level after 100 steps, but reaches 2.836 after 3000 (...": the numbers are in no other field.
    const std::size_t from = verdict->words.find(": is at "), to = verdict->words.find(" (", from);
    if (from != std::string::npos && to != std::string::npos)
      return "Is" + verdict->words.substr(from + 4, to - from - 4) + ".";
  }
  if (verdict != nullptr && !not_trained(verdict->verdict).empty()) return not_trained(verdict->verdict);
  const Tuned* tuned = tuned_of(results, scheme);
  if (tuned != nullptr && verdict != nullptr && !is_comparable(results, *tuned)) {
    const std::size_t from = verdict->words.find(": "), to = verdict->words.find("; ");
    if (from != std::string::npos && to != std::string::npos && from + 2 < to)
      return "In no final: " + verdict->words.substr(from + 2, to - from - 2) + ".";
  }
  if (tuned == nullptr || tuned->loss.n < 1) return "No setting was tried in which no seed diverged.";
  // Of classifiers, what they are for comes first.
  std::string text = tuned->accuracy
                         ? fmt::format("{}, loss {}", right_answers(*tuned->accuracy), draw::loss_text(tuned->loss))
                         : fmt::format("Loss {}", draw::loss_text(tuned->loss));
  if (tuned->lr)
    text += fmt::format(" at a peak rate of {} {}", draw::plain(*tuned->lr),
                        tuned->warmup > 0 ? fmt::format("with {} steps of warmup", tuned->warmup) : "without warmup");
  if (results.kind == ResultsKind::study) {
    const bool extra = std::ranges::find(results.extra_rates, scheme, &ExtraRates::scheme) != results.extra_rates.end();
    if (const std::optional<Cells> cells = shared_cells(results, scheme))
      text += fmt::format("; trains in {} of the {} settings {} in the short runs", cells->learned, cells->all,
                          extra ? "that all schemes share" : "tried");
  } else if (const Cells cells = cells_of(results, scheme); cells.all > 0) {
    text += fmt::format("; learns in {} of {} settings", cells.learned, cells.all);
  }
  return text + ".";
}

std::string stability_sentence(const Results& results, const Cast& cast) {
  if (results.maps.empty()) return "";
  std::vector<std::string> lost, idle;
  for (const CastMember& member : cast.members()) {
    const Cells cells = cells_of(results, member.name);
    if (cells.diverged > 0)
      lost.push_back(fmt::format("{} ({} of {} settings)", member.label, cells.diverged, cells.all));
    if (cells.all > 0 && cells.learned == 0 && cells.diverged < cells.all) idle.push_back(member.label);
  }
  // Of a study the short runs are meant, and those at rates that not all schemes share, which verdicts do not count.
  const std::string where = results.kind != ResultsKind::study ? ""
                            : results.extra_rates.empty()
                                ? "in the short runs"
                                : "in the short runs, those at rates beyond the shared grid included";
  const std::string before = where.empty() ? "Seeds" : fmt::format("I{}, seeds", where.substr(1));
  std::string text = lost.empty()
                         ? fmt::format("No seed diverged{}{}.", where.empty() ? "" : " ", where)
                         : fmt::format("{} diverged with {}{}.", before, listed(lost),
                                       lost.size() < cast.members().size() ? ", and with no other scheme" : "");
  if (!idle.empty())
    text += fmt::format(" Not diverging is not yet training: {} stayed at guessing level throughout.", listed(idle));
  return text;
}

std::string comparison_sentence(const Results& results, const Cast& cast) {
  if (results.comparisons.empty()) {
    if (results.kind != ResultsKind::study || results.runs.empty()) return "";
    const bool final = results.course && std::ranges::any_of(results.course->rounds, [](const CourseRound& round) {
                         return round.stage == Stage::final;
                       });
    if (results.advice.ranking.empty()) return "No scheme came into a final, so nothing was compared.";
    return final ? "No two schemes were in the final, so nothing was compared."
                 : "There was no final comparison: the order is that of short runs, and may change.";
  }
  std::string lead;
  for (const CastMember& member : cast.members()) {
    if (member.tone == draw::Tone::lead) lead = member.name;
  }
  std::vector<std::string> apart, tied;
  for (const Comparison& pair : results.comparisons) {
    if (pair.a != lead && pair.b != lead) continue;
    (pair.apart ? apart : tied).push_back(cast.of(pair.a == lead ? pair.b : pair.a).label);
  }
  const auto count = std::count_if(results.comparisons.begin(), results.comparisons.end(),
                                   [](const Comparison& pair) { return pair.apart; });
  std::string text;
  if (!lead.empty() && !apart.empty())
    text = fmt::format("The final comparison separates {} from {}", cast.of(lead).label, listed(apart));
  if (!lead.empty() && !tied.empty())
    text += text.empty()
                ? fmt::format("The final comparison does not separate {} from {}", cast.of(lead).label, listed(tied))
                : fmt::format(", but not from {}", listed(tied));
  const auto lasting = std::count_if(results.comparisons.begin(), results.comparisons.end(),
                                     [](const Comparison& pair) { return pair.lasting; });
  const bool one = results.comparisons.size() == 1 && !text.empty();
  text +=
      one ? " (paired over seeds and held-out data)."
          : fmt::format("{}Of {} it separates {} (paired over seeds and held-out data, corrected for their number).",
                        text.empty() ? "" : ". ",
                        draw::counted(static_cast<long long>(results.comparisons.size()), "pair", "pairs"),
                        count == 0 ? "none" : std::to_string(count));
  if (count == 0) return text;
  if (lasting == count)
    return text + fmt::format(
                      " At the pace of the last races the scheme{} behind would not catch up within ten times the "
                      "training.",
                      one ? "" : "s");
  if (one)
    return text +
           " The difference cannot be expected to last through ten times the training: the scheme behind may catch up.";
  return text + fmt::format(
                    " {} of these differences can be expected to last through ten times the training: "
                    "the schemes behind may catch up.",
                    lasting == 0 ? "None" : fmt::format("Only {}", lasting));
}

std::string accuracy_sentence(const Results& results, const Cast& cast) {
  if (results.kind == ResultsKind::study && results.advice.ranking.empty()) return "";  // there is no order
  const Tuned *lead = nullptr, *best = nullptr;
  for (const Tuned* one : tuned_in_order(results)) {
    const Verdict* verdict = verdict_of(results, one->scheme);
    if (!one->accuracy || (verdict != nullptr && verdict->rank < 1)) continue;
    if (lead == nullptr) lead = one;
    if (best == nullptr || one->accuracy->mean > best->accuracy->mean) best = one;
  }
  if (lead == nullptr || best == lead || best->scheme == lead->scheme) return "";
  const std::optional<Estimate> more = more_right(results, best->scheme, lead->scheme);
  const std::string difference = !more ? (best->accuracy->low > lead->accuracy->high ? "" : "; their intervals overlap")
                                 : more->low > 0
                                     ? fmt::format("; the paired difference is {:.1f} points ({:.1f} to {:.1f})",
                                                   100 * more->mean, 100 * more->low, 100 * more->high)
                                     : "; the interval of their paired difference includes 0";
  return fmt::format(
      "By right answers the order is different: {} has {}, {} {}{}. The loss, which ranks here, also counts how sure "
      "the answers are.",
      cast.of(best->scheme).label, right_answers(*best->accuracy), cast.of(lead->scheme).label,
      right_answers(*lead->accuracy), difference);
}

std::string depth_sentence(const Results& results, const Cast& cast) {
  const DepthFinding *most = nullptr, *least = nullptr;
  for (const DepthFinding& one : results.depth_use) {
    if (one.effective_depth.n < 1 || !std::isfinite(one.effective_depth.mean)) continue;
    if (most == nullptr || one.effective_depth.mean > most->effective_depth.mean) most = &one;
    if (least == nullptr || one.effective_depth.mean < least->effective_depth.mean) least = &one;
  }
  if (most == nullptr) return "";
  const auto used = [&](const DepthFinding& one) {
    return fmt::format("{} uses {} of {} layers", cast.of(one.scheme).label, draw::depth_text(one.effective_depth),
                       one.layers);
  };
  if (most == least) return used(*most) + ".";
  if (most->effective_depth.low > least->effective_depth.high) return used(*most) + ", " + used(*least) + ".";
  return fmt::format("{}, {}; their intervals overlap.", used(*most), used(*least));
}

std::string law_sentence(const Analysis& analysis, const Cast& cast) {
  std::vector<const Series*> up, down;
  std::vector<std::string> level, open;
  const double zero = zero_level(analysis);
  for (const Series& one : analysis.series) {
    if (!one.exponent || (analysis.log && is_zero(one, zero))) continue;
    switch (trend_of(*one.exponent)) {
      case Trend::grows: up.push_back(&one); break;
      case Trend::falls: down.push_back(&one); break;
      case Trend::level: level.push_back(cast.of(one.scheme).label); break;
      case Trend::open: open.push_back(cast.of(one.scheme).label); break;
    }
  }
  const auto by_power = [](const Series* a, const Series* b) {
    return std::abs(a->exponent->value) > std::abs(b->exponent->value);
  };
  std::stable_sort(up.begin(), up.end(), by_power);
  std::stable_sort(down.begin(), down.end(), by_power);
  std::vector<std::string> parts;
  if (!up.empty()) parts.push_back("grows for " + with_powers(up, cast));
  if (!down.empty()) parts.push_back("falls for " + with_powers(down, cast));
  if (!level.empty()) parts.push_back("stays level for " + listed(level));
  if (!open.empty()) parts.push_back("is not settled for " + listed(open));
  if (parts.empty()) return "";
  const bool by_depth = analysis.exponent_of.empty() || analysis.exponent_of == analysis.x;
  std::string text =
      fmt::format("{}: {} it ", short_title(analysis), by_depth ? "with more layers" : "along the stack");
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : "; ") + parts[i];
  return text + ".";
}

std::string date_text(const std::string& created) {
  constexpr std::array<const char*, 12> kMonths = {"January",   "February", "March",    "April",
                                                   "May",       "June",     "July",     "August",
                                                   "September", "October",  "November", "December"};
  int year = 0, month = 0, day = 0;
  if (std::sscanf(created.c_str(), "%4d-%2d-%2d", &year, &month, &day) != 3 || month < 1 || month > 12) return created;
  return fmt::format("{} {} {}", day, kMonths[static_cast<std::size_t>(month - 1)], year);
}

std::string duration_words(double seconds) {
  if (!(seconds >= 0)) return "";
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace norma
