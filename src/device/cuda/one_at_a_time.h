// Taking and giving back memory waits for all that the device does. While another thread records a step that fails, or
// spoils the recording. So whoever does either holds this.
#pragma once

#include <mutex>

namespace norma::cuda {

inline std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace norma::cuda
