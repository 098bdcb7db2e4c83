// y = x / (1 - p) where kept, 0 where dropped; Philox4x32-10 a vector of counters at a time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/dropout.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "norma/core/random.h"
#include "norma/ops/dropout.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {
namespace dropout_detail {

constexpr std::int64_t kMostWords = 4 * HWY_MAX_BYTES / sizeof(std::uint32_t);

#if HWY_TARGET != HWY_SCALAR
// High words of the 64-bit products a * b.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V multiply_high(D d, V a, V b) {
  const hn::Repartition<std::uint64_t, D> wide;
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), b);
  return hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
}
#endif

// words[0, n) = words 4 * block .. of the stream, n = 4 words for each lane of a vector; returns n.
HWY_INLINE std::int64_t draw(std::uint64_t block, Philox::Key key, std::uint64_t step, std::uint32_t* words) {
#if HWY_TARGET == HWY_SCALAR
  const Philox::Counter drawn =
      Philox::block({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                     static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32)},
                    key);
  for (std::size_t i = 0; i < 4; ++i) words[i] = drawn[i];
  return 4;
#else
  // Blocks are multiples of the vector, so the low word of the counter never wraps inside one.
  const hn::ScalableTag<std::uint32_t> d;
  auto c0 = hn::Iota(d, static_cast<std::uint32_t>(block));
  auto c1 = hn::Set(d, static_cast<std::uint32_t>(block >> 32));
  auto c2 = hn::Set(d, static_cast<std::uint32_t>(step));
  auto c3 = hn::Set(d, static_cast<std::uint32_t>(step >> 32));
  const auto m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u);
  for (int round = 0; round < 10; ++round) {
    const auto high0 = multiply_high(d, c0, m0), low0 = hn::Mul(c0, m0);
    const auto high1 = multiply_high(d, c2, m1), low1 = hn::Mul(c2, m1);
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, key[0]));
    c1 = low1;
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, key[1]));
    c3 = low0;
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  hn::StoreInterleaved4(c0, c1, c2, c3, d, words);
  return 4 * static_cast<std::int64_t>(hn::Lanes(d));
#endif
}

// x, y: elements [begin, begin + n) of the tensor; begin is a multiple of 64. Keeps words of at least `threshold`.
template <typename T>
HWY_INLINE void apply(const T* x, T* y, std::int64_t begin, std::int64_t n, std::uint32_t threshold, T scale,
                      Philox::Key key, std::uint64_t step) {
  HWY_ALIGN std::uint32_t words[kMostWords];
  for (std::int64_t i = 0; i < n;) {
    const std::int64_t drawn = draw(static_cast<std::uint64_t>(begin + i) / 4, key, step, words);
    const std::int64_t count = n - i < drawn ? n - i : drawn;
    if constexpr (sizeof(T) == 4) {
      for_lanes<T>(count, [&](auto d, std::int64_t j) HWY_ATTR {
        const hn::RebindToUnsigned<decltype(d)> du;
        const auto drop = hn::Lt(hn::LoadU(du, words + j), hn::Set(du, threshold));
        const auto kept = hn::Mul(hn::LoadU(d, x + i + j), hn::Set(d, scale));
        hn::StoreU(hn::IfThenZeroElse(hn::RebindMask(d, drop), kept), d, y + i + j);
      });
    } else {
      for (std::int64_t j = 0; j < count; ++j) y[i + j] = words[j] >= threshold ? x[i + j] * scale : T{0};
    }
    i += drawn;
  }
}

}  // namespace dropout_detail

void dropout_f32(const float* x, float* y, std::int64_t begin, std::int64_t n, std::uint32_t threshold, float scale,
                 Philox::Key key, std::uint64_t step) {
  dropout_detail::apply(x, y, begin, n, threshold, scale, key, step);
}
void dropout_f64(const double* x, double* y, std::int64_t begin, std::int64_t n, std::uint32_t threshold, double scale,
                 Philox::Key key, std::uint64_t step) {
  dropout_detail::apply(x, y, begin, n, threshold, scale, key, step);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(dropout_f32);
HWY_EXPORT(dropout_f64);

std::vector<Type> Dropout::infer(std::span<const Type> in) const {
  check_count(in.size(), 3);
  check_computes(in[0]);
  check_type("p", in[1], {{1}, in[0].dtype});
  check_type("the key (seed low, seed high, step low, step high)", in[2], {{4}, DType::i32});
  return {in[0]};
}

Wires Dropout::vjp(const VjpContext& context) const {
  return {dropout(context.dout[0], context.in[1], context.in[2], site_), Wire(), Wire()};
}

Cost Dropout::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = static_cast<double>(out[0].shape.elements()), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const Dropout& op, Types in, Types) {
  const Tiling tiling(in[0].shape.elements(), 4096, 64);
  const std::uint64_t site = hash_name(op.site());
  const auto kernel = [&]<typename T>(auto* run) -> CpuKernel {
    return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                          const std::int64_t begin = tiling.begin(tile), n = tiling.end(tile) - begin;
                          const T* x = call.in<T>(0) + begin;
                          T* y = call.out<T>(0) + begin;
                          const T p = call.in<T>(1)[0];
                          if (p >= T{1}) {
                            std::fill_n(y, n, T{0});
                            return;
                          }
                          const std::int32_t* words = call.in<std::int32_t>(2);
                          const auto word = [&](int i) { return std::uint64_t{static_cast<std::uint32_t>(words[i])}; };
                          const Philox::Key key = stream_key(word(0) | word(1) << 32, site);
                          // A p that is NaN keeps everything, times NaN.
                          const double share = p > T{0} ? static_cast<double>(p) * 0x1p32 : 0.0;
                          run(x, y, begin, n, static_cast<std::uint32_t>(share), T{1} / (T{1} - p), key,
                              word(2) | word(3) << 32);
                        }}}};
  };
  return in[0].dtype == DType::f32 ? kernel.operator()<float>(NORMA_SIMD(dropout_f32))
                                   : kernel.operator()<double>(NORMA_SIMD(dropout_f64));
}

Wire dropout(Wire x, Wire p, Wire key, std::string_view site) {
  const Wire in[] = {x, p, key};
  return x.graph().apply(std::make_shared<Dropout>(std::string(site)), in)[0];
}

}  // namespace norma
#endif  // HWY_ONCE
