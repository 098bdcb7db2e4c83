// The GPU that this process would use, asked without starting anything on it.
#pragma once

#include <cstdint>
#include <string>

namespace norma::cuda {

struct Presence {
  bool usable = false;
  std::string name;     // "NVIDIA H200"
  std::string why_not;  // one sentence, where it is not usable
};
// Of the first visible device; found once.
const Presence& presence();

struct Memory {
  std::int64_t free_bytes = 0, total_bytes = 0;
};
Memory memory();  // of the device, now; throws Error

}  // namespace norma::cuda
