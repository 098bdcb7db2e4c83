// The lock of a directory: one writer at a time, given up by the kernel when its process ends in any way.
#pragma once

#include "norma/store/folder.h"

namespace norma {

inline constexpr const char* kLockName = ".lock";

class DirectoryLock {
 public:
  // Throws Error with the process id of the holder when there is one.
  explicit DirectoryLock(const Folder& folder);
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  ~DirectoryLock();

 private:
  int descriptor_;
};

}  // namespace norma
