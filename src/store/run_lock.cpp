#include "store/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "norma/core/mapped_file.h"
#include "store/file_error.h"

namespace norma {
namespace {

// The holder writes its id after it has the lock, so there is a moment without one.
std::string holder_of(const std::filesystem::path& lock) {
  const std::string text = read_text(lock);
  const std::size_t digits = text.find_first_not_of("0123456789");
  return digits == 0 || text.empty() ? "another process" : "process " + text.substr(0, digits);
}

}  // namespace

int lock_run(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kLockName;
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) fail_with_errno("create the lock", path, errno);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(descriptor);
    if (error == EWOULDBLOCK) fail("'{}' is in use by {}", directory.string(), holder_of(path));
    fail_with_errno("lock", path, error);
  }
  // Only a message for others hangs on this; on a full disk the lock still holds.
  const std::string id = std::to_string(::getpid()) + "\n";
  [[maybe_unused]] const bool named =
      ::ftruncate(descriptor, 0) == 0 && ::pwrite(descriptor, id.data(), id.size(), 0) > 0;
  return descriptor;
}

}  // namespace norma
