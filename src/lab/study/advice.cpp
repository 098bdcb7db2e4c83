// From verdicts to advice: what to use, how sure that is, and what nobody tried.
#include <fmt/format.h>

#include <algorithm>

#include "lab/study/verdict.h"

namespace norma {

Advice advise(const std::vector<SchemeEvidence>& all, const std::vector<Verdict>& verdicts, int seeds,
              std::string_view optimiser) {
  Advice advice;
  std::vector<const SchemeEvidence*> trained;
  for (const Verdict& verdict : verdicts) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.scheme == verdict.scheme; });
    if (best_cell(*found) == nullptr) continue;
    trained.push_back(&*found);
    advice.ranking.push_back(verdict.scheme);
  }
  const bool any_run = std::any_of(all.begin(), all.end(), [](const auto& one) { return !one.cells.empty(); });
  if (!any_run) {
    advice.words = "Nothing was trained, so there is no advice; the analyses at init stand by themselves.";
    advice.confidence = "There is nothing to rank.";
    advice.not_tested = {"training"};
    return advice;
  }
  advice.not_tested = {fmt::format("training at depths other than {} layers", all.front().layers),
                       "other widths, batch sizes and lengths",
                       "more training than these runs had",
                       "other data",
                       fmt::format("optimisers other than {}", optimiser),
                       "half precision",
                       "schemes that are not in the table"};
  if (trained.empty()) {
    advice.words = "No scheme trained at any tried setting; try lower rates, fewer layers or more steps.";
    advice.confidence = "There is nothing to rank.";
    return advice;
  }
  const TrainedCell* first = best_cell(*trained[0]);
  std::vector<std::string> tied;
  for (std::size_t i = 1; i < trained.size(); ++i) {
    if (best_cell(*trained[i])->loss.low <= first->loss.high) tied.push_back(trained[i]->title);
  }
  advice.words = fmt::format(
      "At {} layers use {} with a peak rate near {:g} and {}.", trained[0]->layers, trained[0]->title, first->lr,
      first->warmup > 0 ? fmt::format("{} steps of warmup", first->warmup) : std::string("no warmup"));
  if (const RateEdge edge = edge_of_best(*trained[0]); edge != RateEdge::none)
    advice.words += fmt::format(" That is the {} rate tried: a wider grid may change the order.", name_of(edge));
  if (!tied.empty())
    advice.words += fmt::format(" Within the interval of its loss lie also: {}.", fmt::join(tied, ", "));
  if (seeds < 2) {
    advice.confidence = "Low: one seed, so there are no intervals.";
  } else if (tied.empty()) {
    advice.confidence =
        fmt::format("Fair for this setting: the interval over {} seeds is apart from all others.", seeds);
  } else {
    advice.confidence = fmt::format(
        "Low between the tied schemes: with {} seeds their intervals overlap; more seeds or longer runs would tell.",
        seeds);
  }
  return advice;
}

}  // namespace norma
