// The results of a study on a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "norma/lab/study.h"

namespace norma {
namespace {

template <typename T>
std::map<std::string, const T*> by_scheme(const std::vector<T>& all) {
  std::map<std::string, const T*> found;
  for (const T& one : all) found[one.scheme] = &one;
  return found;
}

std::string number(double value, const char* format) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : std::string("-");
}

// "1.958 to 1.967"
std::string ends(const Estimate& estimate) { return fmt::format("{:.3f} to {:.3f}", estimate.low, estimate.high); }

// A dash without seeds to tell.
std::string interval(const Estimate& estimate) {
  return estimate.n < 2 || !std::isfinite(estimate.low) ? "-" : ends(estimate);
}

// No loss is below 0, which the interval of few seeds does not know.
std::string loss_interval(Estimate loss) {
  if (loss.mean >= 0) loss.low = std::max(0.0, loss.low);
  return interval(loss);
}

// One line per scheme, columns as wide as their widest cell.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool words = i == 2 || i == 3;
      text += words ? fmt::format("  {:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

// The length of the final; 0 where there was none.
std::int64_t final_steps(const std::optional<Course>& course) {
  if (!course) return 0;
  const auto round = std::ranges::find(course->rounds, Stage::final, &CourseRound::stage);
  return round == course->rounds.end() ? 0 : round->steps;
}

// `judged`: classes are answered, and accuracy stands beside the loss.
std::string legend(const std::optional<TaskFacts>& task, bool judged, std::int64_t compared_after) {
  const bool numbers = task && !task->unit.empty() && task->unit != "nats";
  std::string text = fmt::format("loss: held out{}, {}, mean and 95 % interval",
                                 compared_after > 0 ? fmt::format(" after {} steps", compared_after) : "",
                                 numbers  ? task->unit
                                 : judged ? "cross-entropy of an answer"
                                          : "nats per token");
  if (task && task->unigram)
    text += fmt::format("; {} loses {:.3f}", numbers ? "predicting the mean" : "guessing by frequency", *task->unigram);
  if (task && task->optimum) text += fmt::format(", the optimum is {:.3f}", *task->optimum);
  if (judged)
    text +=
        "\naccuracy: share of right answers, held out, of the same runs, 95 % interval over seeds and held-out "
        "records; the loss ranks";
  if (compared_after > 0)
    text +=
        "\nrank: the place that ten times the training can be expected to leave, 1-3 where it may be any of these; "
        "now: the place after these steps";
  return text +
         "\nstable: trains in at least half of the tried rates and warmups; narrow: in fewer; needs warmup: does not "
         "train, or clearly worse, without; starts late: trains in longer runs alone\n";
}

// "2", or "1-3" where the differences of the final that count leave it open which of these places it has. What was not
// seen to train has a place in the list but no rank, and short runs that chose the settings are no comparison.
std::string places_text(const Results& results, const Verdict& verdict, bool Comparison::*counts) {
  const std::vector<std::string>& ranking = results.advice.ranking;
  if (std::ranges::find(ranking, verdict.scheme) == ranking.end()) return "-";
  std::ptrdiff_t ahead = 0, behind = 0, compared = 0;
  for (const Comparison& pair : results.comparisons) {
    if (pair.a != verdict.scheme && pair.b != verdict.scheme) continue;
    ++compared;
    if (!(pair.*counts)) continue;
    (pair.a == verdict.scheme) == (pair.difference.mean > 0) ? ++ahead : ++behind;
  }
  if (compared == 0) return "-";
  const std::ptrdiff_t best = ahead + 1, worst = compared + 1 - behind;
  return best == worst ? std::to_string(best) : fmt::format("{}-{}", best, worst);
}

// "map: 128 runs of 100 steps; race: 64 runs of 200 steps (...)".
std::string course_text(const std::optional<Course>& course) {
  if (!course) return {};
  std::vector<std::string> rounds;
  for (const CourseRound& round : course->rounds)
    rounds.push_back(fmt::format("{}, {} runs of {} steps", name_of(round.stage), round.runs, round.steps));
  return fmt::format("course: {}\n", fmt::join(rounds, "; "));
}

}  // namespace

std::string study_table(const Results& results) {
  const auto tuned = by_scheme(results.tuned);
  const auto depth = by_scheme(results.depth_use);
  const bool judged = std::ranges::any_of(results.tuned, [](const Tuned& one) { return one.accuracy.has_value(); });
  std::vector<std::vector<std::string>> rows = {
      {"rank", "now", "scheme", "verdict", "loss", "interval", "lr", "warmup", "depth used"}};
  if (judged)
    for (const char* heading : {"interval", "accuracy"}) rows[0].insert(rows[0].begin() + 4, heading);
  for (const Verdict& verdict : results.verdicts) {
    const auto best = tuned.find(verdict.scheme);
    const auto used = depth.find(verdict.scheme);
    const Tuned* found = best == tuned.end() || !is_comparable(results, *best->second) ? nullptr : best->second;
    const bool trained = found != nullptr && found->lr;
    rows.push_back({places_text(results, verdict, &Comparison::lasting),
                    places_text(results, verdict, &Comparison::apart), verdict.scheme,
                    std::string(name_of(verdict.verdict)), found != nullptr ? number(found->loss.mean, "{:.3f}") : "-",
                    found != nullptr ? loss_interval(found->loss) : "-", trained ? number(*found->lr, "{:g}") : "-",
                    trained ? std::to_string(found->warmup) : "-",
                    used != depth.end() ? fmt::format("{} of {}", number(used->second->effective_depth.mean, "{:.1f}"),
                                                      used->second->layers)
                                        : "-"});
    if (!judged) continue;
    const bool known = found != nullptr && found->accuracy;
    rows.back().insert(rows.back().begin() + 4, known ? ends(*found->accuracy) : "-");
    rows.back().insert(rows.back().begin() + 4, known ? number(found->accuracy->mean, "{:.3f}") : "-");
  }
  std::string text = aligned(rows);
  if (!tuned.empty()) text += legend(results.task, judged, final_steps(results.course)) + course_text(results.course);
  text += "\n";
  for (const Verdict& verdict : results.verdicts) text += verdict.words + "\n";
  text += fmt::format("\n{} {}\n", results.advice.words, results.advice.confidence);
  text += fmt::format("Not tested: {}.\n", fmt::join(results.advice.not_tested, "; "));
  return text;
}

}  // namespace norma
