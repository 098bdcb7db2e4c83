// One question at several depths: a study of each in a folder of its own, and what changes from one to the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "norma/lab/study.h"

namespace norma {

struct DepthStudy {
  std::int64_t layers = 0;
  std::filesystem::path directory;
  std::string results_json;
};

struct DepthsResult {
  std::vector<DepthStudy> studies;  // shallow first
  bool interrupted = false;
  bool finished_before = false;  // all of them
};

// "12 layers", "1 decoder layer".
std::string layers_text(std::int64_t layers, std::string_view stack = {});

// `layers-12` and so on.
std::filesystem::path study_directory_at(const std::filesystem::path& directory, std::int64_t layers);

// A study of `request.config` at each of these depths, at least two, in folders of their own inside
// the request's directory. A budget of work is shared equally, a time by layers. Throws Error for whatever is wrong
// before anything is computed.
DepthsResult run_study_of_depths(const StudyRequest& request, const std::vector<std::int64_t>& depths,
                                 StudyObserver& observer, const std::atomic<bool>& stop);

// Schemes down, depths across.
struct DepthsRow {
  std::string scheme;
  std::vector<std::string> cells;  // "1.931 (1.924 to 1.939), stable"
};
std::vector<DepthsRow> depths_rows(const std::vector<Results>& studies);
// What to use at each depth, in one sentence.
std::string depths_answer(const std::vector<Results>& studies, const std::vector<std::int64_t>& depths);
// How sure that is and what it rests on; which schemes train at the first depth and not at the last, or the other way
// round.
std::string depths_words(const std::vector<Results>& studies, const std::vector<std::int64_t>& depths);
// The table that such a study ends with on a terminal.
std::string depths_table(const std::vector<Results>& studies, const std::vector<std::int64_t>& depths);

}  // namespace norma
