// What the tests of the store share: full disks, and Python as a second reader.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>

#include "error_of.h"
#include "temporary_folder.h"

namespace norma::test {

inline int files_in(const fs::path& directory) {
  return static_cast<int>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

// Files of this process may not grow beyond `bytes` while one of these lives: writing fails with EFBIG.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit{bytes, old_limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_limit_);
    ::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_limit_{};
  void (*old_handler_)(int);
};

// A file system of one MiB over `directory`, where the tests may mount one.
class SmallDisk {
 public:
  explicit SmallDisk(const TemporaryFolder& directory)
      : path_(directory.path()), mounted_(::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=1m") == 0) {}
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }

  bool mounted() const { return mounted_; }

 private:
  fs::path path_;
  bool mounted_;
};

struct ScriptResult {
  int exit_status = -1;
  std::string output;
};

constexpr int kSkipped = 77;  // exit status of a script that lacks what it needs

// Runs a script of tests/store; exit status 77 when there is no Python.
inline ScriptResult run_script(const std::string& script, const fs::path& argument) {
  const std::string python = NORMA_STORE_PYTHON;
  if (python.empty() || !fs::exists(python)) return {kSkipped, "there is no python3"};
  const std::string command =
      "'" + python + "' '" NORMA_STORE_SCRIPTS "/" + script + "' '" + argument.string() + "' 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  ScriptResult result;
  char chunk[4096];
  for (std::size_t got = 0; (got = std::fread(chunk, 1, sizeof(chunk), pipe)) > 0;) result.output.append(chunk, got);
  const int status = ::pclose(pipe);
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

}  // namespace norma::test
