#include "cli/run_end.h"

#include <fmt/format.h>

#include <exception>

#include "cli/diagnosis_text.h"
#include "cli/output.h"
#include "norma/lab/diagnose.h"
#include "norma/store/atomic_file.h"

namespace norma::cli {
namespace {

// The end of a run should not wait for a large corpus to be read once more.
constexpr std::int64_t kMostDataBytes = std::int64_t{64} << 20;
constexpr int kMostMembers = 3;

bool is_worth_saying(Condition condition) {
  return is_failure(condition) || condition == Condition::undertrained || condition == Condition::nothing_to_learn ||
         condition == Condition::memorised;
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

std::string words_after_failure(const std::filesystem::path& run, const SchemeLibrary& schemes) {
  try {
    const RunHistory history = read_history(run, schemes);
    std::string text;
    int said = 0, more = 0;
    for (const MemberHistory& member : history.members) {
      const bool well = member.result && (member.result->outcome == Outcome::stable ||
                                          member.result->outcome == Outcome::stable_after_spikes);
      if (well) continue;
      if (said == kMostMembers) {
        ++more;
        continue;
      }
      const Diagnosis found = diagnose(history, member, {.most_data_bytes = kMostDataBytes});
      if (!is_worth_saying(found.condition)) continue;
      text += diagnosis_in_short(found, history.members.size() > 1);
      ++said;
    }
    if (more > 0) text += fmt::format("and {} more member{}\n", more, more == 1 ? "" : "s");
    if (!text.empty())
      text += fmt::format("norma diagnose '{}' has the evidence; with --try it runs the cheapest experiments\n",
                          run.string());
    return text;
  } catch (const std::exception&) {
    return "";
  }
}

}  // namespace norma::cli
