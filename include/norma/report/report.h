// The report: one HTML file that shows results.json, works offline, and carries the data it shows.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "norma/lab/study_depths.h"

namespace norma {

// The page of `results_json` (see docs/results.md), with it inside. Texts in the results may be anything: they are
// shown as texts. Throws Error when it is not JSON, of a kind that the page does not know, or not as the schema says;
// errors name `file`.
std::string make_report(std::string_view results_json, std::string_view file = "the results");

// The same as a file, written whole or not at all.
void write_report(const std::filesystem::path& path, std::string_view results_json,
                  std::string_view file = "the results");

// The page of one question at several depths: the answer at each, a table of schemes by depth, and links to the pages
// of the studies, which lie in their own folders beside it.
std::string make_depths_report(const std::vector<DepthStudy>& studies);
void write_depths_report(const std::filesystem::path& path, const std::vector<DepthStudy>& studies);

}  // namespace norma
