// What the surroundings of a process leave it of memory, in bytes. Files are read below `root`, which tests make up.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

namespace norma {

constexpr std::int64_t kNoMemoryLimit = std::numeric_limits<std::int64_t>::max();

// What the process's control groups leave, version 1 or 2: the least of its own group and all above it.
std::int64_t cgroup_memory(const std::filesystem::path& root = "/");

// What `ulimit -v` leaves.
std::int64_t address_space();

}  // namespace norma
