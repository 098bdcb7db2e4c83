// From verdicts to advice: what to use, how sure that is, at what scale it was found, and what nobody tried.
#include <fmt/format.h>

#include <algorithm>

#include "lab/study/verdict.h"

namespace norma {
namespace {

const SchemeEvidence& evidence_of(const std::vector<SchemeEvidence>& all, const std::string& scheme) {
  return *std::ranges::find(all, scheme, &SchemeEvidence::scheme);
}

bool in_final(const SchemeEvidence& one) { return one.final && one.final->loss.n > 0; }

// Of the settings that all schemes share, how many train.
double share_that_trains(const SchemeEvidence& one) {
  double shared = 0, training = 0;
  for (const TrainedCell& cell : one.cells) {
    if (cell.extra) continue;
    ++shared;
    training += cell.trains() ? 1 : 0;
  }
  return shared > 0 ? training / shared : 0;
}

// The leader, or of those tied with it the one that trains in most settings.
const SchemeEvidence& most_robust(const std::vector<const SchemeEvidence*>& ranked) {
  const SchemeEvidence* chosen = ranked[0];
  if (!in_final(*chosen)) return *chosen;
  for (const SchemeEvidence* other : ranked) {
    const bool tied = std::ranges::find(ranked[0]->final->tied_with, other->title) != ranked[0]->final->tied_with.end();
    if (tied && in_final(*other) && share_that_trains(*other) > share_that_trains(*chosen)) chosen = other;
  }
  return *chosen;
}

std::string count_text(double count) {
  if (count >= 1e9) return fmt::format("{:.1f}G", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.1f}M", count / 1e6);
  return count >= 1e4 ? fmt::format("{:.0f}k", count / 1e3) : fmt::format("{:.0f}", count);
}

// "12 layers, width 32 (107k parameters), 400 steps of 256 tokens on grammar, 5 seeds".
std::string scale_text(const SchemeEvidence& one, const StudyScale& scale) {
  const std::int64_t steps = in_final(one) ? one.final->steps : one.map_steps;
  const int seeds = in_final(one) ? one.final->seeds : scale.tuning_seeds;
  return fmt::format("{}, width {} ({} parameters), {} steps of {} {}{}, {} seed{}", layers_text(one.layers),
                     scale.width, count_text(static_cast<double>(scale.parameters)), steps, scale.tokens_per_step,
                     scale.counted, scale.data.empty() ? "" : " on " + scale.data, seeds, seeds == 1 ? "" : "s");
}

std::string distance_text(const SchemeEvidence& one, const StudyScale& scale) {
  const auto times = [](std::int64_t asked, std::int64_t measured) {
    return static_cast<double>(asked) / static_cast<double>(measured);
  };
  std::vector<std::string> far;
  if (scale.asked_layers > 0 && scale.asked_layers != one.layers)
    far.push_back(fmt::format("{:.2g} times the depth", times(scale.asked_layers, one.layers)));
  if (scale.asked_width > 0 && scale.asked_width != scale.width)
    far.push_back(fmt::format("{:.2g} times the width", times(scale.asked_width, scale.width)));
  if (far.empty()) return {};
  const std::string theory = scale.theory ? scale.theory(one) : "";
  return fmt::format(
      " The model asked about has {} of what was measured: whether the order holds there was not tested.{}",
      fmt::join(far, " and "), theory.empty() ? "" : " " + theory);
}

// The headline is read alone, so it says that others would do as well.
std::string ties_text(const FinalEvidence& final) {
  if (final.tied_with.empty()) return {};
  if (final.tied_with.size() == 1) return fmt::format("; {} is tied with it", final.tied_with[0]);
  return fmt::format("; {} others are tied with it", final.tied_with.size());
}

// A lead that longer runs may turn around is a lead at this length, and the headline says at which.
std::string place_text(const SchemeEvidence& chosen) {
  if (chosen.final->ahead_for_now.empty()) return fmt::format("At {}", layers_text(chosen.layers));
  return fmt::format("For runs of {} steps at {}", chosen.final->steps, layers_text(chosen.layers));
}

std::string length_text(const FinalEvidence& final) {
  return final.ahead_for_now.empty() ? "" : "; longer runs may turn this around";
}

// Alone in the final while others may only need more training: that is no choice among them.
bool alone_for_now(const std::vector<const SchemeEvidence*>& ranked, const std::vector<SchemeEvidence>& all) {
  const auto open = [](const SchemeEvidence& one) {
    const Training training = training_of(one);
    return !one.faulty() && !in_final(one) && (training == Training::unclear || training == Training::late);
  };
  const auto finalists = std::ranges::count_if(ranked, [](const SchemeEvidence* one) { return in_final(*one); });
  return finalists == 1 && std::ranges::any_of(all, open);
}

void say_choice(Advice& advice, const std::vector<const SchemeEvidence*>& ranked,
                const std::vector<SchemeEvidence>& all, const StudyScale& scale) {
  const SchemeEvidence &leader = *ranked[0], &chosen = most_robust(ranked);
  const TrainedCell* cell = best_cell(chosen);
  const bool final = in_final(chosen), alone = alone_for_now(ranked, all);
  const double lr = final ? chosen.final->lr : cell->lr;
  const std::int64_t warmup = final ? chosen.final->warmup : cell->warmup;
  const std::string setting = fmt::format("with a peak rate near {:g} and {}", lr,
                                          warmup > 0 ? fmt::format("{} steps of warmup", warmup) : "no warmup");
  const std::string layers = layers_text(chosen.layers);
  // Short runs that chose the settings are no comparison.
  advice.words = alone ? fmt::format(
                             "Undecided at {}: {} alone was below guessing level in runs of this length, {}; "
                             "others may only need longer ones.",
                             layers, chosen.title, setting)
                 : final ? fmt::format("{} use {} {}{}{}.", place_text(chosen), chosen.title, setting,
                                       ties_text(*chosen.final), length_text(*chosen.final))
                 : all.size() > 1
                     ? fmt::format("Undecided at {}: in short runs {} did best, {}.", layers, chosen.title, setting)
                     : fmt::format("At {}, short runs of {} did best {}.", layers, chosen.title, setting);
  if (final && !alone) advice.choice = chosen.scheme;
  if (final && !chosen.final->margin)
    advice.words += " It has no margin: the next larger rate was not tried or does not train.";
  if (const RateEdge edge = edge_of_best(chosen); edge != RateEdge::none)
    advice.words +=
        fmt::format(" In the map the best was the {} rate tried: a wider grid may change the order.", name_of(edge));
  if (&leader != &chosen)
    advice.words += fmt::format(
        " {} cannot be distinguished from it and has the lower mean, but trains in fewer settings.", leader.title);
  advice.words += fmt::format(" Measured at {}.{}", scale_text(chosen, scale), distance_text(chosen, scale));
}

// Of the scheme that is advised, which need not be the one with the lowest mean.
std::string confidence_text(const std::vector<const SchemeEvidence*>& ranked, const StudyScale& scale) {
  const SchemeEvidence& chosen = most_robust(ranked);
  if (!in_final(chosen))
    return fmt::format(
        "Confidence is low: there was no final comparison; the order is that of runs of {} steps, on the data and the "
        "{} seed{} that "
        "chose the settings.{}",
        chosen.map_steps, scale.tuning_seeds, scale.tuning_seeds == 1 ? "" : "s",
        scale.why_no_final.empty() ? "" : " " + scale.why_no_final);
  const FinalEvidence& final = *chosen.final;
  // One graph, or few records.
  std::string judged = final.batches == 1 ? " All were judged on one held-out batch: the intervals cover seeds, not "
                                            "which data happened to be held out."
                                          : "";
  if (scale.judged_on_tuning_data) judged += " There is only one held-out batch, which also chose the settings.";
  const char* fair = final.batches == 1 ? "Confidence is fair on these held-out data alone," : "Confidence is fair";
  const std::string limits =
      (final.falls ? " The losses still fell when the runs were last made longer." : "") + judged;
  if (final.seeds < 2) return "Confidence is low: one seed, so there are no intervals." + limits;
  const auto finalists = std::ranges::count_if(ranked, [](const SchemeEvidence* one) { return in_final(*one); });
  if (finalists < 2)
    return "Confidence is low: no other scheme was in the final, so there is nothing to compare it with." + limits;
  if (!final.tied_with.empty() && final.same_as == final.tied_with)
    return fmt::format(
        "No budget would tell the tied schemes apart: {} and {} have the same losses to the last digit with all {} "
        "seeds, so they are one model here.{}",
        chosen.title, fmt::join(final.tied_with, ", "), final.seeds, limits);
  if (!final.tied_with.empty()) {
    const bool all_seeds = scale.most_seeds > 0 && final.seeds >= scale.most_seeds;
    return fmt::format(
        "Confidence is low between the tied schemes: over {} seeds the interval of the paired difference between {} "
        "and {} includes 0; {}.{}",
        final.seeds, chosen.title, fmt::join(final.tied_with, ", "),
        all_seeds ? "these are as many seeds as a study takes, so a larger budget tells only if it makes runs longer"
                  : "a larger budget may tell",
        limits);
  }
  if (!final.ahead_for_now.empty() && final.steps <= chosen.map_steps)
    return fmt::format(
        "{} after {} steps, over {} seeds and at 5 % for all pairs together; low beyond that: no runs were longer "
        "than those that chose the settings, so nothing says what more training would change.{}",
        fair, final.steps, final.seeds, judged);
  if (!final.ahead_for_now.empty())
    return fmt::format(
        "{} after {} steps, over {} seeds and at 5 % for all pairs together; low beyond that: {} may catch up within "
        "ten times the training, by how fast losses fell when runs were last made longer.{}",
        fair, final.steps, final.seeds, fmt::join(final.ahead_for_now, ", "), judged);
  return fmt::format(
      "{} for this setting: over {} seeds every paired difference to the others is apart from 0, at 5 % for all of "
      "them together, and larger than what ten times the training would make up for at the pace of the last races.{}",
      fair, final.seeds, judged);
}

// What was left out, and that it was.
std::string faults_text(const std::vector<SchemeEvidence>& all) {
  std::vector<std::string> leaking, below;
  for (const SchemeEvidence& one : all) {
    if (one.faulty()) (one.leak.empty() ? below : leaking).push_back(one.title);
  }
  std::string text;
  if (!leaking.empty())
    text += fmt::format(" Left out: {}, where the model sees what it is to predict.", fmt::join(leaking, ", "));
  if (!below.empty())
    text += fmt::format(" Left out: {}, whose loss is lower than any model's can be.", fmt::join(below, ", "));
  return text;
}

// The order is silent about them, and so is not the whole answer.
std::string not_compared_text(const std::vector<SchemeEvidence>& all) {
  std::vector<std::string> unclear;
  std::string tell;
  for (const SchemeEvidence& one : all) {
    if (one.faulty() || training_of(one) != Training::unclear) continue;
    unclear.push_back(one.title);
    if (!one.budget_to_tell.empty())
      tell = fmt::format("; {} would tell whether {}", one.budget_to_tell,
                         unclear.size() > 1 ? "they train" : "it trains");
  }
  if (unclear.empty()) return "";
  return fmt::format(" Not compared: {}, at guessing level in every run so far{}.", fmt::join(unclear, ", "), tell);
}

void say_nothing_trained(Advice& advice, const std::vector<SchemeEvidence>& all) {
  const auto any = [&](Training training) {
    return std::ranges::any_of(
        all, [&](const SchemeEvidence& one) { return !one.faulty() && training_of(one) == training; });
  };
  std::vector<std::string> tries;
  std::vector<std::string> late;
  std::int64_t long_steps = 0;
  for (const SchemeEvidence& one : all) {
    if (one.faulty() || training_of(one) != Training::late) continue;
    late.push_back(one.title);
    long_steps = std::max(long_steps, one.long_steps);
  }
  if (!late.empty())
    tries.push_back(fmt::format("--steps {} with a larger budget, so that they are compared there", long_steps));
  const auto may_tell = [](const SchemeEvidence& one) {
    return !one.faulty() && training_of(one) == Training::unclear &&
           (!one.budget_to_tell.empty() || one.rates_above_guessing.empty());
  };
  if (std::ranges::any_of(all, may_tell)) tries.emplace_back("a larger budget, so that runs are longer");
  if (std::ranges::any_of(all, [](const auto& one) { return !one.rates_above_guessing.empty(); }))
    tries.emplace_back("larger rates, as runs were still above guessing level");
  const auto diverges = [](const SchemeEvidence& one) {
    return !one.faulty() && training_of(one) == Training::diverges;
  };
  if (std::ranges::any_of(all, [&](const auto& one) { return diverges(one) && !diverges_at_once(one); }))
    tries.emplace_back("smaller rates, or more warmup");
  if (std::ranges::any_of(all, [&](const auto& one) { return diverges(one) && diverges_at_once(one); }))
    tries.emplace_back("fewer layers, or a formula whose stream grows less, where the first step is not finite");
  if (any(Training::stuck)) tries.emplace_back("fewer layers or an easier task");
  advice.words = late.empty()
                     ? std::string("No scheme was seen to train, so none is ranked.")
                     : fmt::format(
                           "Undecided at {}: only runs of {} steps got below guessing level, those of {}, and they "
                           "are no comparison.",
                           layers_text(all.front().layers), long_steps, fmt::join(late, ", "));
  if (!tries.empty()) advice.words += fmt::format(" Try {}.", fmt::join(tries, "; "));
  for (const SchemeEvidence& one : all) {
    if (one.budget_to_tell.empty()) continue;
    advice.words += fmt::format(" {} would tell whether {} trains.", one.budget_to_tell, one.title);
    break;
  }
  advice.confidence = "There is nothing to rank.";
}

}  // namespace

Advice advise(const std::vector<SchemeEvidence>& all, const std::vector<Verdict>& verdicts, const StudyScale& scale) {
  Advice advice;
  std::vector<const SchemeEvidence*> trained;
  for (const Verdict& verdict : verdicts) {
    const SchemeEvidence& one = evidence_of(all, verdict.scheme);
    if (one.faulty() || (!in_final(one) && best_cell(one) == nullptr)) continue;
    trained.push_back(&one);
    advice.ranking.push_back(verdict.scheme);
  }
  const bool any_run =
      std::any_of(all.begin(), all.end(), [](const auto& one) { return !one.cells.empty() || one.faulty(); });
  if (!any_run) {
    advice.words = "Nothing was trained, so there is no advice; the analyses at init stand by themselves.";
    advice.confidence = "There is nothing to rank.";
    advice.not_tested = {"training"};
    return advice;
  }
  advice.not_tested = {fmt::format("training at depths other than {}", layers_text(all.front().layers)),
                       "other widths, batch sizes and lengths",
                       "more training than these runs had",
                       "other data",
                       fmt::format("optimisers other than {}", scale.optimiser),
                       scale.mixed_precision ? "single precision" : "half precision",
                       "schemes that are not in the table"};
  if (trained.empty()) {
    say_nothing_trained(advice, all);
    advice.words += faults_text(all);
    return advice;
  }
  say_choice(advice, trained, all, scale);
  advice.words += not_compared_text(all);
  advice.words += faults_text(all);
  advice.confidence = confidence_text(trained, scale);
  return advice;
}

}  // namespace norma
