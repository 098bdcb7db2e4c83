// The report: one HTML file that shows results.json, works offline, and carries the data it shows.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace norma {

// The page with `results_json` (see docs/results.md) inside it. Texts in the results may be anything: they cannot leave
// the place that the page keeps for data. Throws Error when it is not JSON, or of a kind that the page does not know.
std::string make_report(std::string_view results_json);

// The same as a file, written whole or not at all.
void write_report(const std::filesystem::path& path, std::string_view results_json);

}  // namespace norma
