#include "norma/report/report.h"

#include <algorithm>
#include <array>

#include "norma/core/error.h"
#include "norma/lab/results.h"
#include "norma/report/figure.h"
#include "norma/store/atomic_file.h"
#include "report/page/pages.h"
#include "report/page/words.h"
#include "report/results_header.h"

namespace norma {
namespace {

constexpr std::array<std::string_view, 3> kKinds = {"inspect", "study", "sweep"};
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string article_of(const PageParts& parts) {
  switch (parts.results.kind) {
    case ResultsKind::inspect: return inspect_html(parts);
    case ResultsKind::sweep: return sweep_html(parts);
    case ResultsKind::study: return study_html(parts);
  }
  return "";
}

}  // namespace

std::string make_report(std::string_view results_json, std::string_view file) {
  if (results_json.starts_with(kByteOrderMark)) results_json.remove_prefix(kByteOrderMark.size());
  const ResultsHeader header = read_results_header(results_json);
  if (std::find(kKinds.begin(), kKinds.end(), header.kind) == kKinds.end()) {
    fail("the results are of kind '{}'; a report shows inspect, study or sweep", header.kind);
  }
  const Results results = read_results(results_json, file);
  const Cast cast(results);
  const std::vector<Figure> figures = figures_of(results);
  return page_of({.title = "norma: " + header.kind + ", " + date_text(results.created),
                  .kind = header.kind,
                  .html = article_of({results, cast, figures}),
                  .data = std::string(results_json)});
}

void write_report(const std::filesystem::path& path, std::string_view results_json, std::string_view file) {
  write_atomically(path, make_report(results_json, file));
}

}  // namespace norma
