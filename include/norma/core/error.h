// Errors that a user can act on: what was given, what was expected, and where.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace norma {

// A mistake in what the library was given. The library never prints, exits or aborts on one.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> message, Args&&... args) {
  throw Error(fmt::format(message, std::forward<Args>(args)...));
}

// A mistake in the library itself. Thrown rather than aborted, so that a host program survives it.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace norma

#define NORMA_ASSERT(condition) \
  (static_cast<bool>(condition) ? void(0) : ::norma::assertion_failed(#condition, __FILE__, __LINE__))
