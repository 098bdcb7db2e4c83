#include "norma/report/report.h"

#include <algorithm>
#include <array>

#include "norma/core/error.h"
#include "norma/store/atomic_file.h"
#include "report/embedded_page.h"
#include "report/results_header.h"

namespace norma {
namespace {

constexpr std::string_view kHole = "/*norma:results*/";
constexpr std::array<std::string_view, 3> kKinds = {"inspect", "study", "sweep"};
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// In valid JSON '<' stands only inside strings, where \u003c is the same character. Without it no text can end the
// script element or open a comment in it.
void append_escaped(std::string& page, std::string_view json) {
  for (std::size_t at = 0; at < json.size();) {
    const std::size_t next = std::min(json.find('<', at), json.size());
    page += json.substr(at, next - at);
    if (next < json.size()) page += "\\u003c";
    at = next + 1;
  }
}

}  // namespace

std::string make_report(std::string_view results_json) {
  if (results_json.starts_with(kByteOrderMark)) results_json.remove_prefix(kByteOrderMark.size());
  const ResultsHeader header = read_results_header(results_json);
  if (std::find(kKinds.begin(), kKinds.end(), header.kind) == kKinds.end()) {
    fail("the results are of kind '{}'; a report shows inspect, study or sweep", header.kind);
  }
  const std::string_view page = embedded_page();
  const std::size_t hole = page.find(kHole);
  NORMA_ASSERT(hole != std::string_view::npos);
  NORMA_ASSERT(page.find(kHole, hole + 1) == std::string_view::npos);

  std::string report;
  report.reserve(page.size() + results_json.size() + results_json.size() / 16);
  report += page.substr(0, hole);
  append_escaped(report, results_json);
  report += page.substr(hole + kHole.size());
  return report;
}

void write_report(const std::filesystem::path& path, std::string_view results_json) {
  write_atomically(path, make_report(results_json));
}

}  // namespace norma
