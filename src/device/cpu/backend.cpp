#include "norma/device/cpu/backend.h"

#include <algorithm>

#include "norma/core/arena.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"
#include "norma/graph/plan.h"

namespace norma {

CpuBackend::CpuBackend() {
  machine();  // settles the instruction set before any kernel pointer is taken
}

void CpuBackend::add(std::vector<Rewrite> rewrites) {
  rewrites_.insert(rewrites_.end(), rewrites.begin(), rewrites.end());
}

std::unique_ptr<const Kernel> CpuBackend::make(const Op& op, Types in, Types out) const {
  return std::make_unique<const CpuProgram>(kernels_.make(op, in, out));
}

std::int64_t CpuBackend::alignment() const { return kArenaAlignment; }

// Large tensors of one size should not all start at the same place of a page: a load may wait for an earlier store
// whose address has the same lower 12 bits.
std::int64_t CpuBackend::spacing(std::int64_t bytes) const {
  constexpr std::int64_t kPage = 4096, kQuarterPage = 17 * kArenaAlignment;  // about: odd in lines
  if (bytes >= std::int64_t{1} << 20) return 5 * kPage + kQuarterPage;
  return bytes >= std::int64_t{1} << 16 ? kQuarterPage : 0;
}

std::int64_t worker_bytes(const Plan& plan) {
  std::int64_t most = 0;
  for (const Step& step : plan.steps()) {
    const auto* program = dynamic_cast<const CpuProgram*>(step.kernel.get());
    if (program != nullptr) most = std::max(most, align_up(program->worker_bytes));
  }
  return most;
}

}  // namespace norma
