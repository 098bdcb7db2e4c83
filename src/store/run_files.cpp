#include "store/run_files.h"

#include <fmt/format.h>

#include <charconv>
#include <set>

#include "norma/store/atomic_file.h"
#include "norma/store/directory_lock.h"
#include "norma/store/run_directory.h"

namespace norma {

bool is_beginning(const std::string& name) {
  static const std::set<std::string> names = {kLockName, kEnvironmentName, kSchemeName, kDataName, kCheckpointsName};
  return names.contains(name) || is_stale_temporary(name);
}

bool is_run_file(const std::string& name) {
  static const std::set<std::string> names = {kConfigName, kSchemeName,    kEnvironmentName, kDataName,   kMetricsName,
                                              kSealName,   kTokenizerName, kVocabularyName,  kResultName, kDoneName,
                                              kLockName,   kReportName,    kInspectionName};
  return names.contains(name) || name.starts_with("events.out.tfevents.") || is_stale_temporary(name);
}

std::string checkpoint_file_name(std::int64_t step) { return fmt::format("step-{:08}.safetensors", step); }

std::optional<std::int64_t> checkpoint_file_step(const std::string& name) {
  constexpr std::string_view kPrefix = "step-";
  if (!name.starts_with(kPrefix)) return {};
  std::int64_t step = -1;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  return step >= 0 && name == checkpoint_file_name(step) ? std::optional(step) : std::nullopt;
}

bool remove_run(const Folder& parent, const std::string& name) {
  const PathKind kind = parent.kind(name);
  if (kind == PathKind::nothing) return true;
  if (kind != PathKind::folder) return false;
  const Folder run = parent.sub(name);
  run.remove(kConfigName);  // first, so that half of a run is none
  if (run.has_folder(kCheckpointsName)) {
    const Folder checkpoints = run.sub(kCheckpointsName);
    for (const std::string& file : checkpoints.names()) {
      if (checkpoint_file_step(file) || is_stale_temporary(file)) checkpoints.remove(file);
    }
    run.remove_if_empty(kCheckpointsName);
  }
  for (const std::string& file : run.names()) {
    if (!is_run_file(file)) continue;
    run.kind(file) == PathKind::folder ? run.remove_if_empty(file) : run.remove(file);  // an empty folder in its place
  }
  return parent.remove_if_empty(name);
}

}  // namespace norma
