#include "device/cpu/sequential_library.h"

// Declared here rather than through omp.h, so that clang builds talk to the same runtime as oneDNN (libgomp).
extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int);
}

namespace norma {

SequentialLibrary::SequentialLibrary() : outer_(omp_get_max_threads()) { omp_set_num_threads(1); }
SequentialLibrary::~SequentialLibrary() { omp_set_num_threads(outer_); }

}  // namespace norma
