#include "norma/store/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "store/file_error.h"

namespace norma {
namespace {

// The holder writes its id after it has the lock, so there is a moment without one.
std::string holder_of(const Folder& folder) {
  const std::string text = folder.read(kLockName);
  const std::size_t digits = text.find_first_not_of("0123456789");
  return digits == 0 || text.empty() ? "another process" : "process " + text.substr(0, digits);
}

}  // namespace

DirectoryLock::DirectoryLock(const Folder& folder) : descriptor_(folder.open(kLockName, O_RDWR | O_CREAT)) {
  if (descriptor_ < 0) fail_with_errno("create the lock", folder / kLockName, errno);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(descriptor_);
    if (error == EWOULDBLOCK) fail("'{}' is in use by {}", folder.path().string(), holder_of(folder));
    fail_with_errno("lock", folder / kLockName, error);
  }
  // Only a message for others hangs on this; on a full disk the lock still holds.
  const std::string id = std::to_string(::getpid()) + "\n";
  [[maybe_unused]] const bool named =
      ::ftruncate(descriptor_, 0) == 0 && ::pwrite(descriptor_, id.data(), id.size(), 0) > 0;
}

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace norma
