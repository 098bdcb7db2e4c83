// Where the kernels of all folders come together: the CPU with everything it has.
#pragma once

#include "norma/device/cpu/backend.h"

namespace norma {

const CpuBackend& cpu_backend();

}  // namespace norma
