#include "inject_power.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace norma::faults {
namespace {

namespace fs = std::filesystem;

enum class Event { appeared, removed_file, removed_folder, renamed };

struct Change {
  Event event;
  std::string folder;  // whose fsync makes it last
  std::string file;
  std::string other;  // removed: where the contents are kept; renamed: the earlier name
};

struct Memory {
  std::mutex mutex;
  std::map<std::string, std::int64_t> safe_bytes;  // of files that were opened for writing
  std::vector<Change> changes;
  int stashed = 0;
};

Memory& memory() {
  static Memory* const the_memory = new Memory;  // never destroyed: calls come until the process has ended
  return *the_memory;
}

std::string folder_of(const std::string& file) { return file.substr(0, file.rfind('/')); }

std::int64_t size_of(const std::string& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 ? static_cast<std::int64_t>(status.st_size) : 0;
}

// Whatever the shim itself does leaves errno as the program would find it.
class Aside {
 public:
  Aside() : lock_(memory().mutex), error_(errno) {}
  ~Aside() { errno = error_; }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  std::lock_guard<std::mutex> lock_;
  int error_;
};

}  // namespace

bool names_a_file(const char* file) {
  const int kept = errno;
  struct stat status {};
  const bool found = ::lstat(file, &status) == 0;
  errno = kept;
  return found;
}

void opened(const char* file, bool existed) {
  const Aside aside;
  memory().safe_bytes.try_emplace(file, existed ? size_of(file) : 0);
  if (!existed) memory().changes.push_back({Event::appeared, folder_of(file), file, {}});
}

void written(const char* file) {
  const Aside aside;
  memory().safe_bytes.try_emplace(file, size_of(file));
}

void synced(const char* file) {
  if (plan().lies_about_sync) return;
  const Aside aside;
  const auto found = memory().safe_bytes.find(file);
  if (found != memory().safe_bytes.end()) found->second = size_of(file);
  std::erase_if(memory().changes, [&](const Change& change) { return change.folder == file; });
}

void about_to_remove(const char* file) {
  const Aside aside;
  struct stat status {};
  if (::lstat(file, &status) != 0) return;
  if (S_ISDIR(status.st_mode)) {
    memory().changes.push_back({Event::removed_folder, folder_of(file), file, {}});
    return;
  }
  const std::string kept = std::string(plan().stash) + "/" + std::to_string(memory().stashed++);
  std::error_code error;
  fs::create_hard_link(file, kept, error);
  if (!error) memory().changes.push_back({Event::removed_file, folder_of(file), file, kept});
}

void renamed(const char* from, const char* to) {
  const Aside aside;
  const auto found = memory().safe_bytes.find(from);
  if (found != memory().safe_bytes.end()) {
    memory().safe_bytes[to] = found->second;
    memory().safe_bytes.erase(from);
  }
  memory().changes.push_back({Event::renamed, folder_of(to), to, from});
}

void created(const char* file) {
  const Aside aside;
  memory().changes.push_back({Event::appeared, folder_of(file), file, {}});
}

void lose_contents() {
  const Aside aside;
  for (const auto& [file, bytes] : memory().safe_bytes)
    if (size_of(file) > bytes) fs::resize_file(file, static_cast<std::uintmax_t>(bytes));
}

void lose_names() {
  const Aside aside;
  std::vector<Change>& changes = memory().changes;
  std::error_code ignored;  // a folder that is gone takes what was in it along
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    switch (change->event) {
      case Event::appeared: fs::remove_all(change->file, ignored); break;
      case Event::removed_file: fs::rename(change->other, change->file, ignored); break;
      case Event::removed_folder: fs::create_directory(change->file, ignored); break;
      case Event::renamed: fs::rename(change->file, change->other, ignored); break;
    }
  }
}

}  // namespace norma::faults
