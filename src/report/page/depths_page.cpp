// The page of one question at several depths: what to use at each, a table of schemes by depth, and a figure and a link
// for each study.
#include <fmt/format.h>

#include <algorithm>

#include "norma/core/error.h"
#include "norma/report/report.h"
#include "norma/store/atomic_file.h"
#include "report/page/pages.h"
#include "report/page/words.h"

namespace norma {
namespace {

std::string study_section(const DepthStudy& study, const Results& results, int number) {
  const Cast cast(results);
  std::vector<Figure> figures = figures_of(results);
  const auto loss = std::ranges::find(figures, "loss", &Figure::id);
  std::string html = paragraph(results.advice.words) + paragraph(results.advice.confidence);
  if (loss != figures.end()) {
    loss->id = fmt::format("loss-{}", study.layers);
    html += figure_html(*loss, number, Drawn::twice);
  }
  html += fmt::format("<p><a href=\"layers-{}/report.html\">The whole study at {}</a></p>\n", study.layers,
                      layers_text(study.layers));
  return section(fmt::format("layers-{}", study.layers), layers_text(study.layers), html);
}

}  // namespace

std::string make_depths_report(const std::vector<DepthStudy>& studies) {
  NORMA_ASSERT(!studies.empty());
  std::vector<Results> all;
  std::vector<std::int64_t> depths;
  HtmlTable by_depth{.columns = {"Scheme"}};
  for (const DepthStudy& study : studies) {
    all.push_back(read_results(study.results_json, study.directory.string()));
    depths.push_back(study.layers);
    by_depth.columns.push_back(layers_text(study.layers));
  }
  for (const DepthsRow& row : depths_rows(all)) {
    by_depth.rows.push_back({row.scheme});
    by_depth.rows.back().insert(by_depth.rows.back().end(), row.cells.begin(), row.cells.end());
  }
  const Cast cast(all.back());
  Results whole = all.back();  // schemes, task and date are those of all
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    whole.runs.insert(whole.runs.end(), all[i].runs.begin(), all[i].runs.end());
    whole.seconds += all[i].seconds;
  }
  std::string html =
      head_html(fmt::format("Study at {} layers · {}", fmt::join(depths, " and "), facts_of(whole, cast)),
                depths_answer(all, depths), depths_words(all, depths));
  html += table("Held-out loss at each scheme's own setting, with 95 % interval, and verdict", by_depth);
  for (std::size_t i = 0; i < studies.size(); ++i) html += study_section(studies[i], all[i], static_cast<int>(i) + 1);
  return page_of({.title = "norma: study, " + date_text(all.back().created),
                  .kind = "study",
                  .html = html,
                  .data = studies.back().results_json});
}

void write_depths_report(const std::filesystem::path& path, const std::vector<DepthStudy>& studies) {
  write_atomically(path, make_depths_report(studies));
}

}  // namespace norma
