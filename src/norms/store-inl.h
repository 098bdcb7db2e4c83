// Plain or streaming stores behind one name, compiled once per instruction set.
#if defined(NORMA_NORMS_STORE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_NORMS_STORE_INL_H_
#undef NORMA_NORMS_STORE_INL_H_
#else
#define NORMA_NORMS_STORE_INL_H_
#endif

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "norms/stores.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Streaming needs a whole vector at an aligned address; single lanes (the end of an odd row) are stored plainly.
template <Stores kStores, class D, class V = hn::Vec<D>>
HWY_INLINE void store_as(V v, D d, hn::TFromD<D>* to) {
  if constexpr (kStores == Stores::streaming && hn::MaxLanes(D()) > 1) {
    hn::Stream(v, d, to);
  } else {
    hn::StoreU(v, d, to);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#endif  // NORMA_NORMS_STORE_INL_H_
