// SIMD helpers, compiled once per instruction set (Highway). Include after hwy/highway.h in a file that is re-included
// by hwy/foreach_target.h. NaN in gives NaN out everywhere; nothing clamps what it returns.
#if defined(NORMA_CORE_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_CORE_SIMD_INL_H_
#undef NORMA_CORE_SIMD_INL_H_
#else
#define NORMA_CORE_SIMD_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

// The exported function compiled for this machine; taken once, when a plan is built.
#ifndef NORMA_SIMD
#define NORMA_SIMD(function) (&HWY_DYNAMIC_DISPATCH(function))
#endif

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Runs body(tag, i) over [0, n): whole vectors first, then single lanes. Elementwise results do not depend on which.
template <typename T, typename Body>
HWY_INLINE void for_lanes(std::int64_t n, const Body& body) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(d, i);
  for (; i < n; ++i) body(one, i);
}

// Sum of all lanes as a scalar, in a fixed order.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::TFromD<D> sum_lanes(D d, V v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

// Sum of term(tag, i) over [0, n) with four accumulators: the dependency chain stays short, the order stays fixed.
template <typename T, typename Term>
HWY_INLINE T sum_over(std::int64_t n, const Term& term) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Add(a, term(d, i));
    b = hn::Add(b, term(d, i + lanes));
    c = hn::Add(c, term(d, i + 2 * lanes));
    e = hn::Add(e, term(d, i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = hn::Add(a, term(d, i));
  T total = sum_lanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e)));
  for (; i < n; ++i) total += hn::GetLane(term(one, i));
  return total;
}

// exp for any float: 0 below the range, infinity above it, NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  using T = hn::TFromD<D>;
  const V top =
      hn::Set(d, static_cast<T>(sizeof(T) == 4 ? 100.0 : 720.0));  // already infinite, still inside Exp's range
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, hn::Min(x, top)));
}

// 2^t in f32, for t <= 0 or hardly above, in half of the time that Highway's takes: t is rounded into the exponent
// (adding a large number leaves the integer in the low bits), with a polynomial for the fraction (Cephes exp2f). Below
// 2^-125 it is 0; NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_below(D d, V t) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, 12582912.0f + 127.0f);
  const V shifted = hn::Add(t, magic);
  const V f = hn::Sub(t, hn::Sub(shifted, magic));
  V p = hn::Set(d, 1.535336188319500e-4f);
  p = hn::MulAdd(p, f, hn::Set(d, 1.339887440266574e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 9.618437357674640e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.550332471162809e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.402264791363012e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 6.931472028550421e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::IfThenZeroElse(hn::Lt(t, hn::Set(d, -125.0f)), hn::Mul(p, power));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, static_cast<hn::TFromD<D>>(1));
  return hn::Div(one, hn::Add(one, exp(d, hn::Neg(x))));
}

// tanh. f32: x P(x^2) / Q(x^2) fitted on [-8.1, 8.1], beyond which tanh is 1 to 1.9e-7; relative error below 4e-7, no
// exponential, so that a pass over memory stays a pass over memory. f64: Highway's.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 8) {
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, x));
  } else {
    const auto c = [&](double v) HWY_ATTR { return hn::Set(d, static_cast<T>(v)); };
    const V clamped = hn::Max(hn::Min(x, c(8.1)), c(-8.1));
    const V square = hn::Mul(clamped, clamped);
    V p = c(1.1325815661235774e-05);
    p = hn::MulAdd(p, square, c(0.0029415761258177365));
    p = hn::MulAdd(p, square, c(0.12916886972128504));
    p = hn::MulAdd(p, square, c(0.99999983941300329));
    V q = c(2.4263237448491487e-07);
    q = hn::MulAdd(q, square, c(0.00023733077406973744));
    q = hn::MulAdd(q, square, c(0.023776961307493536));
    q = hn::MulAdd(q, square, c(0.46250090860042867));
    q = hn::MulAdd(q, square, c(1));
    const V y = hn::Div(hn::Mul(clamped, p), q);
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Max(hn::Min(y, c(1)), c(-1)));
  }
}

// Applies a scalar function lane by lane: for f64, where speed does not matter and the last digit does.
template <class D, typename Scalar, class V = hn::Vec<D>>
HWY_INLINE V by_lane(D d, V x, Scalar scalar) {
  HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  hn::Store(x, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = scalar(lanes[i]);
  return hn::Load(d, lanes);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V log(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return by_lane(d, x, [](double v) HWY_ATTR { return std::log(v); });
  } else {
    return by_lane(d, x, [](float v) HWY_ATTR { return std::log(v); });
  }
}

// erf. f32: Abramowitz & Stegun 7.1.26, absolute error below 1.5e-7; f64: the C library.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf(D d, V x) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 8) {
    return by_lane(d, x, [](double v) HWY_ATTR { return std::erf(v); });
  } else {
    const V one = hn::Set(d, T{1});
    const V magnitude = hn::Abs(x);
    const V t = hn::Div(one, hn::MulAdd(hn::Set(d, T{0.3275911f}), magnitude, one));
    V poly = hn::Set(d, T{1.061405429f});
    poly = hn::MulAdd(poly, t, hn::Set(d, T{-1.453152027f}));
    poly = hn::MulAdd(poly, t, hn::Set(d, T{1.421413741f}));
    poly = hn::MulAdd(poly, t, hn::Set(d, T{-0.284496736f}));
    poly = hn::MulAdd(poly, t, hn::Set(d, T{0.254829592f}));
    const V tail = hn::Mul(hn::Mul(poly, t), exp(d, hn::Neg(hn::Mul(x, x))));
    return hn::CopySign(hn::Sub(one, tail), x);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#endif  // NORMA_CORE_SIMD_INL_H_
