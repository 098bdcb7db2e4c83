// The runs in a folder, one line each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "norma/core/words.h"
#include "norma/schemes/library.h"

namespace norma {

enum class ListedKind { run, sweep, study };

inline constexpr Word<ListedKind> kListedKindWords[] = {
    {"run", ListedKind::run}, {"sweep", ListedKind::sweep}, {"study", ListedKind::study}};
constexpr std::span<const Word<ListedKind>> words_for(ListedKind) { return kListedKindWords; }
inline std::string_view name_of(ListedKind kind) { return word_for(words_for(kind), kind); }

struct ListedRun {
  std::string path;  // below the folder that was asked for
  ListedKind kind = ListedKind::run;
  std::string outcome;  // "stable", "diverged, step 17"; of several members how many ended how; "not finished"
  double loss = 0;      // the best held-out loss of a member at the end, or of training; NaN: none
  std::string scheme = {}, task = {};
  std::int64_t layers = 0, width = 0, parameters = 0, steps = 0, members = 0;  // 0: not known
  double lr = 0;
  std::int64_t written = 0;  // when its last file was, in seconds since 1970
};

struct UnreadFolder {
  std::string path, why;
};

struct RunList {
  std::vector<ListedRun> runs = {};
  std::vector<UnreadFolder> damaged = {};  // runs that cannot be read
  std::vector<std::string> foreign = {};   // folders that hold no run
};

// Looks into folders of folders too; runs of a sweep or a study are listed when it is itself what is asked for. Follows
// no link. Throws Error when `folder` is no folder.
RunList list_runs(const std::filesystem::path& folder, const SchemeLibrary& schemes = {});

enum class RunOrder { name, loss, outcome, scheme, size, steps, time };
inline constexpr Word<RunOrder> kRunOrderWords[] = {
    {"name", RunOrder::name}, {"loss", RunOrder::loss},   {"outcome", RunOrder::outcome}, {"scheme", RunOrder::scheme},
    {"size", RunOrder::size}, {"steps", RunOrder::steps}, {"time", RunOrder::time}};
constexpr std::span<const Word<RunOrder>> words_for(RunOrder) { return kRunOrderWords; }

// Smallest or first first, the newest first by time; what has no loss comes last. Equal ones by name.
void sort_runs(std::vector<ListedRun>& runs, RunOrder order);
std::string write_run_list(const RunList& list);  // as JSON

}  // namespace norma
