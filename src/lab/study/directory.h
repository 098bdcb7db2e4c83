// The directory of a study: study.toml says what was asked for, DONE that results.json answers it.
#pragma once

#include <optional>
#include <string>

#include "norma/lab/study.h"
#include "norma/store/directory_lock.h"
#include "norma/store/folder.h"

namespace norma {

// The results of this very study where it has ended before: the same request, schemes, data and version of norma.
std::optional<std::string> finished_study(const StudyRequest& request);

// Open and locked against other studies as long as this object lives.
class StudyDirectory {
 public:
  // Throws Error when it is the directory of something else, or with the process id of who has it open. Leftovers of a
  // killed process are removed.
  explicit StudyDirectory(const StudyRequest& request);

  // Writes results.json, then DONE.
  void finish(const std::string& results) const;

 private:
  const StudyRequest& request_;
  Folder folder_;
  DirectoryLock lock_;
};

}  // namespace norma
