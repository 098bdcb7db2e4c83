#include "cli/run_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "cli/diagnosis_text.h"
#include "cli/output.h"
#include "cli/run_page.h"
#include "norma/lab/diagnose.h"
#include "norma/report/run_report.h"
#include "norma/store/atomic_file.h"
#include "norma/store/directory_lock.h"
#include "norma/store/run_directory.h"

namespace norma::cli {
namespace {

// The end of a run should not wait for a large corpus to be read once more.
constexpr std::int64_t kMostDataBytes = std::int64_t{64} << 20;
constexpr int kMostMembers = 3;  // of which it is said why

bool is_worth_saying(Condition condition) {
  return is_failure(condition) || condition == Condition::undertrained || condition == Condition::nothing_to_learn ||
         condition == Condition::memorised;
}

bool ended_well(const MemberHistory& member) {
  return member.result &&
         (member.result->outcome == Outcome::stable || member.result->outcome == Outcome::stable_after_spikes);
}

// The first members that did not end well; where all did, the first one.
std::vector<Diagnosis> diagnose_some(const RunHistory& history) {
  std::vector<Diagnosis> found;
  for (const MemberHistory& member : history.members) {
    if (!ended_well(member) && found.size() < kMostMembers)
      found.push_back(diagnose(history, member, {.most_data_bytes = kMostDataBytes}));
  }
  if (found.empty() && !history.members.empty())
    found.push_back(diagnose(history, history.members.front(), {.most_data_bytes = kMostDataBytes}));
  return found;
}

std::string words_of(const RunHistory& history, const std::vector<Diagnosis>& found) {
  std::string text;
  for (const Diagnosis& diagnosis : found) {
    if (is_worth_saying(diagnosis.condition)) text += diagnosis_in_short(diagnosis, history.members.size() > 1);
  }
  if (text.empty()) return text;
  const auto bad = std::count_if(history.members.begin(), history.members.end(),
                                 [](const MemberHistory& member) { return !ended_well(member); });
  const auto more = bad - std::ssize(found);
  if (more > 0) text += fmt::format("and {} more member{}\n", more, more == 1 ? "" : "s");
  return text + fmt::format("norma diagnose '{}' has the evidence; with --try it runs the cheapest experiments\n",
                            history.path.string());
}

}  // namespace

bool write_page(const std::filesystem::path& path, const std::function<std::string()>& make) {
  try {
    write_atomically(path, make());
    return true;
  } catch (const std::exception& error) {
    note("warning: there is no page '{}': {}\n", path.string(), error.what());
    return false;
  }
}

std::string close_run(const std::filesystem::path& run, const SchemeLibrary& schemes, PageOfRun page) {
  try {
    const RunHistory history = read_history(run, schemes);
    const std::vector<Diagnosis> found = diagnose_some(history);
    if (page == PageOfRun::anew || kind_of(run / kReportName) != PathKind::file) {
      const Folder folder(run);
      const DirectoryLock lock(folder);
      remove_stale_temporaries(folder);  // of a page that a kill cut short
      write_page(run / kReportName, [&] { return make_run_report(page_of(history, found)); });
    }
    return words_of(history, found);
  } catch (const std::exception& error) {
    note("warning: there is no page of '{}': {}\n", run.string(), error.what());
    return "";
  }
}

}  // namespace norma::cli
