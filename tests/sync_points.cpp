#include "sync_points.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

namespace norma::test {

std::function<void(const std::string& path)> on_sync;

bool killed_at_sync(int at, const std::function<void()>& action) {
  constexpr int kKilled = 99, kFailed = 98;
  const pid_t child = ::fork();
  if (child == 0) {
    int syncs = 0;
    on_sync = [&](const std::string&) {
      if (++syncs == at) ::_exit(kKilled);
    };
    try {
      action();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in the process that was to be killed: %s\n", error.what());
      ::_exit(kFailed);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) == kFailed) std::terminate();
  return WEXITSTATUS(status) == kKilled;
}

}  // namespace norma::test

// In the place of the C library's.
extern "C" int fsync(int descriptor) {
  if (norma::test::on_sync) {
    char path[4096];
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
    norma::test::on_sync(length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "");
  }
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}
