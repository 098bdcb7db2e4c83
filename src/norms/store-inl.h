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

// out[i] = value(tag, i) over [0, n). Four values are computed before the first is stored: a load that follows a store
// at nearly the same place in another page would wait for it.
template <Stores kStores, typename T, typename Value>
HWY_INLINE void store_lanes(std::int64_t n, T* out, const Value& value) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto a = value(d, i), b = value(d, i + lanes), c = value(d, i + 2 * lanes), e = value(d, i + 3 * lanes);
    store_as<kStores>(a, d, out + i);
    store_as<kStores>(b, d, out + i + lanes);
    store_as<kStores>(c, d, out + i + 2 * lanes);
    store_as<kStores>(e, d, out + i + 3 * lanes);
  }
  for (; i + lanes <= n; i += lanes) store_as<kStores>(value(d, i), d, out + i);
  for (; i < n; ++i) store_as<kStores>(value(one, i), one, out + i);
}

// Into the second-level cache: the first one is full of what is at hand.
template <typename T>
HWY_INLINE void prefetch(const T* at) {
  __builtin_prefetch(at, 0, 2);
}

// Two passes over a row that comes from memory ask for the row at `next` before it is needed, each for one half: so the
// second, which writes, reads as well.
template <class D, typename T>
HWY_INLINE void prefetch_first_half(D d, const T* next, std::int64_t i) {
  if (i / static_cast<std::int64_t>(hn::Lanes(d)) % 2 == 0) prefetch(next + i / 2);
}
template <class D, typename T>
HWY_INLINE void prefetch_second_half(D d, const T* next, std::int64_t i, std::int64_t width) {
  prefetch_first_half(d, next + width / 2, i);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#endif  // NORMA_NORMS_STORE_INL_H_
