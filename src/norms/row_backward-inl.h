// The backward kernels of every row norm, compiled once per instruction set.
#if defined(NORMA_NORMS_ROW_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_NORMS_ROW_BACKWARD_INL_H_
#undef NORMA_NORMS_ROW_BACKWARD_INL_H_
#else
#define NORMA_NORMS_ROW_BACKWARD_INL_H_
#endif

#include "core/simd-inl.h"
#include "hwy/highway.h"
#include "norms/row.h"
#include "norms/row_backward_cache-inl.h"
#include "norms/row_backward_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

template <class Norm, typename T>
HWY_INLINE void row_backward(const Call& call, const RowBackward& layout, std::int64_t begin, std::int64_t end,
                             T* dgain, T* dbias) {
  // Without dx there is nothing to store and no second pass.
  const bool from_memory = layout.stores == Stores::streaming || call.out<T>(0) == nullptr;
  const auto choose = [&]<bool kGain, bool kResidual>() HWY_ATTR {
    from_memory ? row_backward_from_memory<Norm, kGain, kResidual>(call, layout, begin, end, dgain, dbias)
                : row_backward_in_cache<Norm, kGain, kResidual>(call, layout, begin, end, dgain, dbias);
  };
  const bool gain = !Norm::kOneGain && layout.gain >= 0;
  if (layout.residuals > 0) {
    gain ? choose.template operator()<!Norm::kOneGain, true>() : choose.template operator()<false, true>();
  } else {
    gain ? choose.template operator()<!Norm::kOneGain, false>() : choose.template operator()<false, false>();
  }
  if (from_memory) hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#endif  // NORMA_NORMS_ROW_BACKWARD_INL_H_
