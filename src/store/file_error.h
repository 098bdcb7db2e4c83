// How the store reports a failed system call: path, attempt, and the system's reason.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "norma/core/error.h"

namespace norma {

[[noreturn]] inline void fail_with_errno(std::string_view attempt, const std::filesystem::path& path, int error) {
  fail("cannot {} '{}': {}", attempt, path.string(), std::system_category().message(error));
}

}  // namespace norma
