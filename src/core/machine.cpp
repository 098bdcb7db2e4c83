#include "norma/core/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <thread>

#include "hwy/targets.h"
#include "norma/core/error.h"

namespace norma {
namespace {

// Chooses the SIMD kernels for the whole process, once, before any kernel pointer is taken.
std::string choose_instruction_set() {
  const char* const wish = std::getenv("NORMA_MAX_ISA");
  const std::string_view cap = wish == nullptr ? "" : wish;
  std::int64_t disabled = 0;
  if (cap == "avx2") {
    disabled = HWY_AVX3 | HWY_AVX3_DL;
  } else if (cap == "baseline") {
    disabled = HWY_AVX3 | HWY_AVX3_DL | HWY_AVX2 | HWY_SSE4 | HWY_SSSE3;
  } else if (!cap.empty() && cap != "avx512") {
    fail("NORMA_MAX_ISA is '{}'; expected baseline, avx2 or avx512", cap);
  }
  hwy::DisableTargets(disabled);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  const std::int64_t enabled = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(enabled & -enabled);  // a lower bit is a better target
}

// What the kernel says about the outermost cache of one core. The C library guesses on some virtual machines: 320 MiB
// where there are 32.
std::int64_t last_level_cache_of_kernel() {
  std::int64_t bytes = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    std::int64_t size = 0;
    char unit = 'B';
    if (!(file >> size)) break;
    file >> unit;
    bytes = std::max(bytes, size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0));
  }
  return bytes;
}

Machine read_machine() {
  Machine result;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  result.cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0
                     ? CPU_COUNT(&allowed)
                     : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::int64_t l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::int64_t l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  const std::int64_t known = last_level_cache_of_kernel();
  result.last_level_cache = known > 0 ? known : (l3 > 0 ? l3 : (l2 > 0 ? l2 : std::int64_t{8} << 20));
  result.instruction_set = choose_instruction_set();
  return result;
}

}  // namespace

const Machine& machine() {
  static const Machine result = read_machine();
  return result;
}

}  // namespace norma
