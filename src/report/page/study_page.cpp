// The article of a study: the answer, one figure, then stability, curves, use of depth, and only then initialisation.
#include <fmt/format.h>

#include <algorithm>

#include "report/figures/axis.h"
#include "report/figures/init.h"
#include "report/figures/parts.h"
#include "report/page/pages.h"
#include "report/page/words.h"

namespace norma {
namespace {

// ", at 6, 12 and 24 layers, 3 networks of each": what an inspection at init looked at.
std::string scale_words(const Results& results) {
  const auto by_depth = std::ranges::find_if(results.analyses, [](const Analysis& one) {
    return one.x == "layers" && !one.series.empty() && !one.series.front().y.empty();
  });
  if (by_depth == results.analyses.end()) return "";
  std::vector<std::string> depths;
  for (const double depth : by_depth->series.front().x) depths.push_back(draw::plain(depth));
  const int networks = by_depth->series.front().y.front().n;
  return fmt::format(", at {} layer{}{}", listed(depths), depths == std::vector<std::string>{"1"} ? "" : "s",
                     networks > 1 ? fmt::format(", {} networks of each", networks) : ", one network of each");
}

}  // namespace

std::string study_html(const PageParts& parts) {
  const Results& results = parts.results;
  const auto [answer, rest] = first_sentence(results.advice.words);
  std::string html = head_html("Study · " + facts_of(results, parts.cast), answer.empty() ? "Study" : answer, rest);
  html += parts.figure("loss", 1);
  html += paragraph(results.advice.confidence, "confidence");
  html += schemes_html(parts);
  html += section("stability-section", "Where they train",
                  paragraph(stability_sentence(results, parts.cast)) + parts.figure("stability", 2) +
                      parts.folded_figures("Stability maps, every rate and warmup", {"maps", "maps-depth"}));
  html += section("training", "How they learn",
                  paragraph(comparison_sentence(results, parts.cast)) +
                      paragraph(accuracy_sentence(results, parts.cast)) + parts.figure("curves", 3));
  html += section("depth-section", "What they do with depth",
                  paragraph(depth_sentence(results, parts.cast)) + parts.figure("depth", 4) +
                      parts.folded_figures("Layer by layer", {"layers", "likeness"}));
  // A study that only looked at networks at init has nothing else to show.
  html += init_html(parts, results.runs.empty() ? 1 : 0);
  return html + method_html(results);
}

std::string sweep_html(const PageParts& parts) {
  const Results& results = parts.results;
  const Tuned* best = nullptr;
  for (const Tuned& one : results.tuned) {
    if (one.loss.n > 0 && one.lr && (best == nullptr || one.loss.mean < best->loss.mean)) best = &one;
  }
  const auto ended = std::count_if(results.runs.begin(), results.runs.end(), [](const RunOutcome& run) {
    return run.status != RunStatus::waiting && run.status != RunStatus::running;
  });
  std::string title = "No run has ended yet";
  const std::optional<double> guessing = guessing_of(results);
  if (best != nullptr && guessing && best->loss.mean > *guessing - kLearned) {
    title = loss_unit(results) == "nats" ? "No setting learned more than guessing by frequency."
                                         : "No setting learned more than predicting the mean.";
  } else if (best != nullptr) {
    title = fmt::format("Lowest loss: {}, {} at {}, at a peak rate of {}", parts.cast.of(best->scheme).label,
                        draw::loss_text(best->loss.mean), draw::counted(best->layers, "layer", "layers"),
                        draw::plain(*best->lr));
    title += best->warmup > 0 ? fmt::format(" with {} steps of warmup", best->warmup) : " without warmup";
    title += best->accuracy ? fmt::format(", {}.", right_answers(*best->accuracy)) : ".";
  } else if (ended > 0) {
    title = "In every setting a seed diverged or was stopped.";
  }
  std::string standfirst = fmt::format(
      "{} of {} ended. Settings are chosen by the loss that is shown, so the lowest looks better than it is; a study "
      "compares on "
      "data that no choice has seen.",
      ended, draw::counted(static_cast<long long>(results.runs.size()), "run", "runs"));
  std::string html = head_html("Sweep · " + facts_of(results, parts.cast), title, standfirst);
  html += parts.figure("loss", 1) + schemes_html(parts);
  html += section("stability-section", "Where they train",
                  paragraph(stability_sentence(results, parts.cast)) + parts.figure("stability", 2) +
                      parts.folded_figures("Stability maps", {"maps", "maps-depth", "ramps"}));
  html += section("training", "How they learn", parts.figure("curves", 3));
  html += section("depth-section", "What depth brings", parts.figure("gain-by-depth", 4));
  return html + method_html(results);
}

std::string inspect_html(const PageParts& parts) {
  const Results& results = parts.results;
  const bool trained = is_trained(results), worth = !results.depth_use.empty();
  const std::string about =
      worth     ? trained ? "What the layers of a trained model are worth" : "What layers are worth at initialisation"
      : trained ? "Inside a trained model"
      : parts.cast.members().size() == 1 ? parts.cast.members().front().label + " at initialisation"
                                         : fmt::format("{} schemes at initialisation", parts.cast.members().size());
  std::string answer = depth_sentence(results, parts.cast);
  std::vector<const Analysis*> laws = main_analyses(results);
  std::ranges::stable_partition(laws, [](const Analysis* one) { return one->name == "amplification"; });
  for (const Analysis* one : laws) {
    if (answer.empty()) answer = law_sentence(*one, parts.cast);
  }
  std::string html = head_html("Inspection · " + facts_of(results, parts.cast), answer.empty() ? about : answer,
                               answer.empty() ? "" : about + (trained ? "" : scale_words(results)) + ".");
  if (worth) html += parts.figure("depth", 1) + parts.folded_figures("Layer by layer", {"layers", "likeness"});
  html += init_html(parts, worth ? 2 : 1, answer);
  return html + schemes_html(parts) + method_html(results);
}

}  // namespace norma
