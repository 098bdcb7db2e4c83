// The kernels of this folder on the CPU.
#pragma once

#include "norma/device/cpu/backend.h"

namespace norma {

void add_norms(CpuBackend& cpu);

}  // namespace norma
