// Switches of trial builds: what was and what is, compared in one binary.
#pragma once

#include <cstdlib>
#include <string_view>

namespace norma {

inline bool trial(const char* variable, std::string_view value) {
  const char* const given = std::getenv(variable);
  return given != nullptr && value == given;
}

// Everything as it was; only the chunks of logits; only the rows of logits.
inline bool old_loss() {
  static const bool old = trial("NORMA_TRIAL_LOSS", "old");
  return old;
}
inline bool old_chunks() {
  static const bool old = old_loss() || trial("NORMA_TRIAL_LOSS", "chunks");
  return old;
}
inline bool old_rows() {
  static const bool old = old_loss() || trial("NORMA_TRIAL_LOSS", "rows");
  return old;
}
// Everything as it was, or only those named "products", "norms", "alone".
inline bool old_sums(std::string_view which) {
  static const std::string_view given = [] {
    const char* const value = std::getenv("NORMA_TRIAL_SUMS");
    return value == nullptr ? std::string_view() : std::string_view(value);
  }();
  return given == "old" || given == which;
}

}  // namespace norma
