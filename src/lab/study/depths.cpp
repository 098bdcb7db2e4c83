#include "norma/lab/study_depths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "lab/directory_kind.h"
#include "lab/study/parts.h"
#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::size_t kMostDepths = 8;

// Work is the same for everybody, a time is divided by layers. What a study did not need is not given to the next: then
// a study that goes on would be another one.
StudyBudget share_of(const StudyBudget& all, const std::vector<std::int64_t>& depths, std::size_t index) {
  const auto layers = static_cast<double>(std::accumulate(depths.begin(), depths.end(), std::int64_t{0}));
  const bool timed = all.unit == StudyBudget::Unit::seconds;
  const double share = timed ? static_cast<double>(depths[index]) / layers : 1 / static_cast<double>(depths.size());
  return {all.unit, all.amount * share};
}

// Whatever part is under way, at which depth.
class ObserverAtDepth final : public StudyObserver {
 public:
  // What comes before it and itself take these shares of the time of all.
  ObserverAtDepth(StudyObserver& inner, std::int64_t layers, double before, double own)
      : inner_(inner), layers_(layers), before_(before), own_(own) {}
  void progressed(std::string_view part, double done, std::string_view what) override {
    inner_.progressed(fmt::format("{}, {}", layers_text(layers_), part), done, what);
  }
  void spent(double share) override { inner_.spent(before_ + own_ * std::min(share, 1.0)); }
  void said(const std::string& line) override { inner_.said(fmt::format("{}: {}", layers_text(layers_), line)); }

 private:
  StudyObserver& inner_;
  std::int64_t layers_;
  double before_, own_;
};

std::vector<std::int64_t> checked_depths(const StudyRequest& request, std::vector<std::int64_t> depths) {
  std::ranges::sort(depths);
  if (std::ranges::adjacent_find(depths) != depths.end()) fail("a depth is given twice: {}", fmt::join(depths, ", "));
  if (depths.size() > kMostDepths) fail("{} depths are too many for one study; at most {}", depths.size(), kMostDepths);
  if (kind_of(request.directory / kStudyFile) == PathKind::file)
    fail("'{}' holds a study of one depth; choose another --out", request.directory.string());
  return depths;
}

const Tuned* tuned_of(const Results& results, const std::string& scheme) {
  const auto found = std::ranges::find(results.tuned, scheme, &Tuned::scheme);
  return found == results.tuned.end() || found->loss.n == 0 || !found->lr ? nullptr : &*found;
}

const Verdict* verdict_of(const Results& results, const std::string& scheme) {
  const auto found = std::ranges::find(results.verdicts, scheme, &Verdict::scheme);
  return found == results.verdicts.end() ? nullptr : &*found;
}

bool is_alive(const Verdict& verdict) {
  return verdict.verdict == Judgement::stable || verdict.verdict == Judgement::narrow ||
         verdict.verdict == Judgement::needs_warmup || verdict.verdict == Judgement::starts_late;
}

std::string cell_text(const Results& results, const std::string& scheme) {
  const Verdict* const verdict = verdict_of(results, scheme);
  if (verdict == nullptr) return "-";
  const Tuned* const tuned = tuned_of(results, scheme);
  if (tuned == nullptr || !is_alive(*verdict) || !is_comparable(results, *tuned))
    return std::string(name_of(verdict->verdict));
  const std::string interval =
      tuned->loss.n > 1 ? fmt::format(" ({:.3f} to {:.3f})", tuned->loss.low, tuned->loss.high) : "";
  return fmt::format("{:.3f}{}, {}", tuned->loss.mean, interval, name_of(verdict->verdict));
}

std::string title_of(const Results& results, const std::string& scheme) {
  for (const SchemeSummary& one : results.schemes) {
    if (one.name == scheme && !one.title.empty()) return one.title;
  }
  return scheme;
}

// Whether longer runs may turn the choice around: it leads others that are not known to stay behind.
bool may_turn_around(const Results& results) {
  const std::string& choice = results.advice.choice;
  return std::ranges::any_of(results.comparisons, [&](const Comparison& pair) {
    const bool ahead = pair.difference.mean < 0 ? pair.a == choice : pair.b == choice;
    return ahead && pair.apart && !pair.lasting;
  });
}

// "Longer runs than 800 steps at 12 layers and 3200 at 48 may turn this around."
std::string length_words(const std::vector<Results>& studies, const std::vector<std::int64_t>& depths) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < studies.size(); ++i) {
    if (!may_turn_around(studies[i])) continue;
    const Tuned* const tuned = tuned_of(studies[i], studies[i].advice.choice);
    const std::string_view unit = parts.empty() ? " steps" : "", layers = parts.empty() ? " layers" : "";
    parts.push_back(tuned != nullptr && tuned->steps > 0
                        ? fmt::format("{}{} at {}{}", tuned->steps, unit, depths[i], layers)
                        : fmt::format("these at {}{}", depths[i], layers));
  }
  return parts.empty() ? "" : fmt::format(" Longer runs than {} may turn this around.", fmt::join(parts, " and "));
}

// How sure each answer is and what it rests on, as its own study says: "Confidence low, measured at 12 layers, width
// 64, ...".
std::string scale_words(const std::vector<Results>& studies) {
  constexpr std::string_view kMeasured = "Measured at ";
  std::string words;
  for (const Results& one : studies) {
    const std::string& advice = one.advice.words;
    const std::size_t begin = advice.find(kMeasured);
    if (begin == std::string::npos) continue;
    const std::size_t end = advice.find(". ", begin);
    const bool fair = one.advice.confidence.starts_with("Confidence is fair");
    words += fmt::format("Confidence {}, m{} ",
                         !fair                  ? "low"
                         : may_turn_around(one) ? "fair at that length"
                                                : "fair",
                         advice.substr(begin + 1, end == std::string::npos ? end : end - begin));
  }
  return words;
}

}  // namespace

std::filesystem::path study_directory_at(const std::filesystem::path& directory, std::int64_t layers) {
  return directory / fmt::format("layers-{}", layers);
}

DepthsResult run_study_of_depths(const StudyRequest& request, const std::vector<std::int64_t>& asked,
                                 StudyObserver& observer, const std::atomic<bool>& stop) {
  const std::vector<std::int64_t> depths = checked_depths(request, asked);
  check_study(request.config);
  std::filesystem::create_directories(request.directory);
  DepthsResult result{.studies = {}, .finished_before = true};
  const auto layers = static_cast<double>(std::accumulate(depths.begin(), depths.end(), std::int64_t{0}));
  double before = 0;
  for (std::size_t i = 0; i < depths.size() && !result.interrupted; ++i) {
    StudyRequest one = request;
    one.directory = study_directory_at(request.directory, depths[i]);
    one.config.base.model.layers = depths[i];
    one.config.budget = share_of(request.config.budget, depths, i);
    one.config.beside_other_depths = true;
    // Networks at init are looked at over depths of their own: once is enough.
    one.config.inspect = request.config.inspect && i + 1 == depths.size();
    const double own = static_cast<double>(depths[i]) / layers;
    ObserverAtDepth at_depth(observer, depths[i], before, own);
    before += own;
    StudyResult study = run_study(one, at_depth, stop);
    result.interrupted = study.interrupted;
    result.finished_before = result.finished_before && study.finished_before;
    result.studies.push_back({depths[i], one.directory, std::move(study.results_json)});
  }
  return result;
}

std::vector<DepthsRow> depths_rows(const std::vector<Results>& studies) {
  std::vector<DepthsRow> rows;
  for (const Verdict& verdict : studies.back().verdicts) {
    DepthsRow row{.scheme = title_of(studies.back(), verdict.scheme), .cells = {}};
    for (const Results& one : studies) row.cells.push_back(cell_text(one, verdict.scheme));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string depths_answer(const std::vector<Results>& studies, const std::vector<std::int64_t>& depths) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> choices;  // in the order of the first depth of each
  for (std::size_t i = 0; i < studies.size(); ++i) {
    const std::string& choice = studies[i].advice.choice;
    auto known = std::ranges::find(choices, choice, [](const auto& one) { return one.first; });
    if (known == choices.end()) known = choices.insert(choices.end(), {choice, {}});
    known->second.push_back(depths[i]);
  }
  std::vector<std::string> parts;
  for (const auto& [choice, at] : choices) {
    const std::string where =
        at.size() == 1 ? "at " + layers_text(at[0]) : fmt::format("at {} layers", fmt::join(at, " and "));
    parts.push_back(choice.empty() ? "undecided " + where
                                   : fmt::format("{} use {}", where, title_of(studies.back(), choice)));
  }
  std::string text = fmt::format("{}.", fmt::join(parts, "; "));
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + length_words(studies, depths);
}

std::string depths_words(const std::vector<Results>& studies, const std::vector<std::int64_t>& depths) {
  std::vector<std::string> lost, gained;
  for (const Verdict& deep : studies.back().verdicts) {
    const Verdict* const shallow = verdict_of(studies.front(), deep.scheme);
    if (shallow == nullptr || is_alive(*shallow) == is_alive(deep)) continue;
    (is_alive(deep) ? gained : lost)
        .push_back(fmt::format("{} ({})", title_of(studies.back(), deep.scheme),
                               name_of(is_alive(deep) ? shallow->verdict : deep.verdict)));
  }
  std::string words = scale_words(studies);
  if (!lost.empty())
    words += fmt::format("Seen to train at {} and not at {}: {}. ", layers_text(depths.front()), depths.back(),
                         fmt::join(lost, ", "));
  if (!gained.empty())
    words += fmt::format("Seen to train at {} and not at {}: {}. ", layers_text(depths.back()), depths.front(),
                         fmt::join(gained, ", "));
  return words + "Runs of different depths may differ in length: compare schemes within a depth.";
}

std::string depths_table(const std::vector<Results>& studies, const std::vector<std::int64_t>& depths) {
  const std::vector<DepthsRow> rows = depths_rows(studies);
  std::size_t first = 6;
  std::vector<std::size_t> widths(depths.size());
  for (const DepthsRow& row : rows) {
    first = std::max(first, row.scheme.size());
    for (std::size_t i = 0; i < row.cells.size(); ++i) widths[i] = std::max(widths[i], row.cells[i].size());
  }
  std::string text = fmt::format("  {:<{}}", "scheme", first);
  for (std::size_t i = 0; i < depths.size(); ++i) text += fmt::format("  {:<{}}", layers_text(depths[i]), widths[i]);
  text.erase(text.find_last_not_of(' ') + 1);
  text += "\n";
  for (const DepthsRow& row : rows) {
    text += fmt::format("  {:<{}}", row.scheme, first);
    for (std::size_t i = 0; i < row.cells.size(); ++i) text += fmt::format("  {:<{}}", row.cells[i], widths[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text + "\n" + depths_answer(studies, depths) + " " + depths_words(studies, depths) + "\n";
}

}  // namespace norma
