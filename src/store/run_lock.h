// The lock of a run directory: one writer at a time, given up by the kernel when its process ends in any way.
#pragma once

#include <filesystem>

namespace norma {

constexpr const char* kLockName = ".lock";

// A descriptor that holds the lock until it is closed. Throws Error with the process id of the holder.
int lock_run(const std::filesystem::path& directory);

}  // namespace norma
