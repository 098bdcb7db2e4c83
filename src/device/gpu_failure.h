// What an error of the GPU means to whoever trains on it. Codes are those of CUDA's runtime, which never change;
// nothing here needs CUDA, so that it is tested everywhere.
#pragma once

#include <string>
#include <string_view>

namespace norma {

inline constexpr int kGpuOutOfMemory = 2, kGpuOldDriver = 35, kGpuInUse = 46, kGpuNone = 100;

// One sentence: what was being done, what went wrong and what helps. `name` and `text` are CUDA's own.
std::string gpu_failure(int code, std::string_view doing, std::string_view name, std::string_view text);

// Whether the GPU, or its driver, stopped working in the middle of something.
bool is_lost_gpu(int code);

}  // namespace norma
