// Defines the exported kernels of one row norm: NORMA_ROW_NORM_KERNELS(layer, LayerRow) inside the target's namespace,
// NORMA_ROW_NORM_EXPORT(layer) once outside.
#include "norms/row_backward-inl.h"
#include "norms/row_norm-inl.h"

#ifndef NORMA_ROW_NORM_KERNELS
#define NORMA_ROW_NORM_KERNELS(norm, Policy)                                                                      \
  void norm##_row_forward_f32(const Call& call, const RowForward& layout, std::int64_t begin, std::int64_t end) { \
    row_forward<Policy, float>(call, layout, begin, end);                                                         \
  }                                                                                                               \
  void norm##_row_forward_f64(const Call& call, const RowForward& layout, std::int64_t begin, std::int64_t end) { \
    row_forward<Policy, double>(call, layout, begin, end);                                                        \
  }                                                                                                               \
  void norm##_row_backward_f32(const Call& call, const RowBackward& layout, std::int64_t begin, std::int64_t end, \
                               float* dgain, float* dbias) {                                                      \
    row_backward<Policy, float>(call, layout, begin, end, dgain, dbias);                                          \
  }                                                                                                               \
  void norm##_row_backward_f64(const Call& call, const RowBackward& layout, std::int64_t begin, std::int64_t end, \
                               double* dgain, double* dbias) {                                                    \
    row_backward<Policy, double>(call, layout, begin, end, dgain, dbias);                                         \
  }

#define NORMA_ROW_NORM_EXPORT(norm)                                                    \
  HWY_EXPORT(norm##_row_forward_f32);                                                  \
  HWY_EXPORT(norm##_row_forward_f64);                                                  \
  HWY_EXPORT(norm##_row_backward_f32);                                                 \
  HWY_EXPORT(norm##_row_backward_f64);                                                 \
  static RowNormKernels norm##_row_kernels() {                                         \
    return {NORMA_SIMD(norm##_row_forward_f32), NORMA_SIMD(norm##_row_forward_f64),    \
            NORMA_SIMD(norm##_row_backward_f32), NORMA_SIMD(norm##_row_backward_f64)}; \
  }
#endif
