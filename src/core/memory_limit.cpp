#include "core/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

namespace norma {
namespace {

namespace fs = std::filesystem;

// How a version of control groups names its files.
struct GroupFiles {
  const char *limit, *used;
  std::initializer_list<std::string_view> reclaimable;  // keys of memory.stat
};
const GroupFiles kVersion1 = {
    "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_active_file", "total_inactive_file"}};
const GroupFiles kVersion2 = {"memory.max", "memory.current", {"active_file", "inactive_file", "slab_reclaimable"}};

std::int64_t number_in(const fs::path& path, std::int64_t otherwise) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : otherwise;  // "max" is no number and means no limit
}

// What the kernel gives back under pressure: a group counts the pages of every file it has read as used.
std::int64_t reclaimable(const fs::path& group, const GroupFiles& files) {
  std::ifstream file(group / "memory.stat");
  std::int64_t total = 0, bytes = 0;
  for (std::string key; file >> key >> bytes;) {
    if (std::find(files.reclaimable.begin(), files.reclaimable.end(), key) != files.reclaimable.end()) total += bytes;
  }
  return total;
}

std::int64_t left_in(const fs::path& group, const GroupFiles& files) {
  const std::int64_t limit = number_in(group / files.limit, kNoMemoryLimit);
  if (limit == kNoMemoryLimit) return kNoMemoryLimit;
  const std::int64_t used = number_in(group / files.used, 0) - reclaimable(group, files);
  return std::max<std::int64_t>(0, limit - std::max<std::int64_t>(0, used));
}

// Of the group at `path` below the mount and of those above it. Inside a container the path may be that of the host,
// of which only the mount itself is to be seen.
std::int64_t left_in_all(const fs::path& mount, std::string_view path, const GroupFiles& files) {
  std::int64_t least = left_in(mount, files);
  fs::path group = mount;
  for (const fs::path& part : fs::path(path).relative_path()) {
    if (part == "..") break;
    group /= part;
    least = std::min(least, left_in(group, files));
  }
  return least;
}

}  // namespace

std::int64_t cgroup_memory(const fs::path& root) {
  const fs::path mount = root / "sys/fs/cgroup";
  std::int64_t least = std::min(left_in(mount, kVersion2), left_in(mount / "memory", kVersion1));
  std::ifstream groups(root / "proc/self/cgroup");  // lines of "4:memory:/path", or of version 2 "0::/path"
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string_view path = std::string_view(line).substr(second + 1);
    if (controllers == ",,") {
      least = std::min(least, left_in_all(mount, path, kVersion2));
      least = std::min(least, left_in_all(mount / "unified", path, kVersion2));
    } else if (controllers.find(",memory,") != std::string::npos) {
      least = std::min(least, left_in_all(mount / "memory", path, kVersion1));
    }
  }
  return least;
}

std::int64_t address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoMemoryLimit;
  const std::int64_t used = number_in("/proc/self/statm", 0) * sysconf(_SC_PAGESIZE);
  const auto most = static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, kNoMemoryLimit));
  return std::max<std::int64_t>(0, most - used);
}

}  // namespace norma
