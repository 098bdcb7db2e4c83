// When records that are appended to a log reach the operating system, from where they survive a kill of the process.
#pragma once

#include <chrono>
#include <cstddef>

namespace norma {

// Looked at whenever a record is appended; there is no thread behind it. {.records = 1} writes each at once.
struct FlushPolicy {
  std::size_t records = 64;              // as soon as this many are waiting
  std::chrono::milliseconds age{2'000};  // or as soon as the oldest has waited this long
};

}  // namespace norma
