#include "device/gpu_failure.h"

#include <fmt/format.h>

#include <algorithm>

namespace norma {
namespace {

// Driver shutting down, device not initialised, memory that can no longer be corrected, a broken link between cards, a
// reset after a kernel that took too long, hardware faults while a kernel ran, a contained fault, and "unknown", which
// is what a card says that fell off its bus.
constexpr int kLostCodes[] = {4, 201, 214, 220, 226, 702, 714, 715, 716, 717, 719, 721, 999};

}  // namespace

bool is_lost_gpu(int code) { return std::ranges::find(kLostCodes, code) != std::end(kLostCodes); }

std::string gpu_failure(int code, std::string_view doing, std::string_view name, std::string_view text) {
  switch (code) {
    case kGpuOutOfMemory: return fmt::format("{}: the GPU is out of memory", doing);
    case kGpuOldDriver:
      return fmt::format("{}: the NVIDIA driver is older than this program needs; update it, or use --device=cpu",
                         doing);
    case kGpuNone: return fmt::format("{}: there is no NVIDIA GPU here; use --device=cpu", doing);
    case kGpuInUse:
      return fmt::format("{}: the GPU is in use by another process and not shared; wait for it, or use --device=cpu",
                         doing);
    default: break;
  }
  if (is_lost_gpu(code))
    return fmt::format(
        "{}: the GPU stopped working ({}: {}); what was stored is whole, and the same command goes on from the last "
        "checkpoint once the GPU answers again (nvidia-smi shows whether it does)",
        doing, name, text);
  return fmt::format("{}: CUDA reports {} ({})", doing, name, text);
}

}  // namespace norma
