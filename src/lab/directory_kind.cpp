#include "lab/directory_kind.h"

#include <set>

#include "norma/core/error.h"
#include "norma/store/atomic_file.h"
#include "norma/store/directory_lock.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

// config.toml alone may be anybody's; norma train writes both.
bool holds_run(const Folder& folder) { return folder.has_file("config.toml") && folder.has_file("environment.json"); }

bool is_study(const Folder& folder) {
  if (folder.has_file(kStudyFile)) return true;
  return folder.has_folder("sweep") && folder.sub("sweep").has_file(kSweepFile);
}

// What is written before sweep.toml.
bool is_beginning_of_sweep(const Folder& folder, const std::string& name) {
  static const std::set<std::string> names = {kLockName, "schemes.json", "data.json"};
  if (name == "runs") return folder.has_folder(name) && folder.sub(name).names().empty();
  return names.contains(name) || is_stale_temporary(name);
}

bool is_folder(const fs::path& path, const char* purpose) {
  const PathKind kind = kind_of(path);
  if (kind == PathKind::nothing) return false;
  if (kind != PathKind::folder) fail("'{}' is a file; expected a folder for a {}", path.string(), purpose);
  return true;
}

}  // namespace

bool holds_sweep(const fs::path& path) {
  return kind_of(path) == PathKind::folder && Folder(path).has_file(kSweepFile);
}

bool holds_study(const fs::path& path) { return kind_of(path) == PathKind::folder && is_study(Folder(path)); }

void require_sweep_directory(const fs::path& path) {
  if (!is_folder(path, "sweep") || holds_sweep(path)) return;
  const Folder folder(path);
  const char* other = holds_run(folder) ? "a run" : is_study(folder) ? "a study" : nullptr;
  if (other != nullptr)
    fail("'{}' holds {}; a sweep needs a directory of its own, choose another", path.string(), other);
  for (const std::string& name : folder.names()) {
    if (!is_beginning_of_sweep(folder, name))
      fail("'{}' holds something else than a sweep ('{}'); choose another directory", path.string(), name);
  }
}

void require_study_directory(const fs::path& path) {
  if (!is_folder(path, "study")) return;
  const Folder folder(path);
  const char* other = holds_run(folder) ? "a run" : folder.has_file(kSweepFile) ? "a sweep" : nullptr;
  if (other != nullptr)
    fail("'{}' holds {}; a study needs a directory of its own, choose another", path.string(), other);
}

}  // namespace norma
