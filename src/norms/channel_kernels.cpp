// Inner loops of batch, instance and group norm: every line of x is walked once per pass, channels in vectors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "norms/channel_kernels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "norms/channel.h"
#include "norms/store-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

// total[channels] += term(tag, row offset, i), four rows for each load of the total.
template <typename T, typename Term>
HWY_INLINE void channel_add_rows(std::int64_t rows, std::int64_t channels, T* total, const Term& term) {
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    const std::int64_t a = row * channels, b = a + channels, c = b + channels, e = c + channels;
    for_lanes<T>(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      const auto four = hn::Add(hn::Add(term(d, a, i), term(d, b, i)), hn::Add(term(d, c, i), term(d, e, i)));
      hn::StoreU(hn::Add(hn::LoadU(d, total + i), four), d, total + i);
    });
  }
  for (; row < rows; ++row) {
    for_lanes<T>(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, total + i), term(d, row * channels, i)), d, total + i);
    });
  }
}

template <typename T>
HWY_INLINE void channel_zero(std::int64_t channels, T* line) {
  for_lanes<T>(channels, [&](auto d, std::int64_t i) HWY_ATTR { hn::StoreU(hn::Zero(d), d, line + i); });
}

// Two passes over a block that fits in the second-level cache, merged with the blocks before (Chan et al. 1979).
template <typename T>
HWY_INLINE void channel_moments(const T* x, std::int64_t rows, std::int64_t channels, T* mean, T* squares, T* work) {
  const std::int64_t fit = (std::int64_t{1} << 17) / (channels * static_cast<std::int64_t>(sizeof(T)));
  const std::int64_t block = HWY_MAX(std::int64_t{8}, HWY_MIN(fit, std::int64_t{256}));
  T *const here = work, *const around = work + channel_line_stride<T>(channels);
  channel_zero(channels, mean);
  channel_zero(channels, squares);
  for (std::int64_t begin = 0; begin < rows; begin += block) {
    const std::int64_t count = HWY_MIN(block, rows - begin);
    const T* const part = x + begin * channels;
    channel_zero(channels, here);
    channel_zero(channels, around);
    channel_add_rows<T>(count, channels, here, [&](auto d, std::int64_t row, std::int64_t i) HWY_ATTR {
      return hn::LoadU(d, part + row + i);
    });
    const T n = static_cast<T>(count), before = static_cast<T>(begin);
    for_lanes<T>(channels, [&](auto d, std::int64_t i)
                               HWY_ATTR { hn::StoreU(hn::Div(hn::LoadU(d, here + i), hn::Set(d, n)), d, here + i); });
    channel_add_rows<T>(count, channels, around, [&](auto d, std::int64_t row, std::int64_t i) HWY_ATTR {
      const auto centred = hn::Sub(hn::LoadU(d, part + row + i), hn::LoadU(d, here + i));
      return hn::Mul(centred, centred);
    });
    const T share = n / (before + n);
    for_lanes<T>(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      const auto old = hn::LoadU(d, mean + i), delta = hn::Sub(hn::LoadU(d, here + i), old);
      const auto step = hn::Mul(delta, hn::Set(d, share));
      const auto apart = hn::Mul(hn::Mul(delta, hn::Set(d, before)), step);
      hn::StoreU(hn::Add(old, step), d, mean + i);
      hn::StoreU(hn::Add(hn::LoadU(d, squares + i), hn::Add(hn::LoadU(d, around + i), apart)), d, squares + i);
    });
  }
}

template <Stores kStores, typename T>
HWY_INLINE void channel_apply_as(const T* x, std::int64_t rows, std::int64_t channels, const T* mean, const T* scale,
                                 const T* shift, T* y) {
  for (std::int64_t row = 0; row < rows; ++row, x += channels, y += channels) {
    store_lanes<kStores>(channels, y, [&](auto d, std::int64_t i) HWY_ATTR {
      const auto centred = hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, mean + i));
      return hn::MulAdd(centred, hn::LoadU(d, scale + i), hn::LoadU(d, shift + i));
    });
  }
}

template <typename T>
HWY_INLINE void channel_apply(const T* x, std::int64_t rows, std::int64_t channels, const T* mean, const T* scale,
                              const T* shift, T* y, Stores stores) {
  if (stores == Stores::plain) return channel_apply_as<Stores::plain>(x, rows, channels, mean, scale, shift, y);
  channel_apply_as<Stores::streaming>(x, rows, channels, mean, scale, shift, y);
  hwy::FlushStream();
}

// Both sums in one walk, kRows rows for each read and write of the totals.
template <int kRows, typename T>
HWY_INLINE void channel_sums_rows(const T* x, const T* dy, std::int64_t channels, ChannelLines<T> s, T* sum_dy,
                                  T* sum_dy_xh) {
  for_lanes<T>(channels, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto mean = hn::LoadU(d, s.mean + i), rstd = hn::LoadU(d, s.rstd + i);
    auto plain = hn::Zero(d), weighted = hn::Zero(d);
    for (int row = 0; row < kRows; ++row) {
      const auto dy_here = hn::LoadU(d, dy + row * channels + i);
      plain = hn::Add(plain, dy_here);
      weighted = hn::MulAdd(dy_here, hn::Sub(hn::LoadU(d, x + row * channels + i), mean), weighted);
    }
    hn::StoreU(hn::Add(hn::LoadU(d, sum_dy + i), plain), d, sum_dy + i);
    hn::StoreU(hn::MulAdd(weighted, rstd, hn::LoadU(d, sum_dy_xh + i)), d, sum_dy_xh + i);
  });
}

template <typename T>
HWY_INLINE void channel_sums(const T* x, const T* dy, std::int64_t rows, std::int64_t channels, ChannelLines<T> s,
                             T* sum_dy, T* sum_dy_xh) {
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    channel_sums_rows<4>(x + row * channels, dy + row * channels, channels, s, sum_dy, sum_dy_xh);
  }
  for (; row < rows; ++row)
    channel_sums_rows<1>(x + row * channels, dy + row * channels, channels, s, sum_dy, sum_dy_xh);
}

template <Stores kStores, typename T>
HWY_INLINE void channel_dx_as(const T* x, const T* dy, std::int64_t rows, std::int64_t channels, const T* mean,
                              const T* scale, const T* shift, const T* pull, T* dx) {
  for (std::int64_t row = 0; row < rows; ++row, x += channels, dy += channels, dx += channels) {
    store_lanes<kStores>(channels, dx, [&](auto d, std::int64_t i) HWY_ATTR {
      const auto centred = hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, mean + i));
      const auto direct = hn::MulSub(hn::LoadU(d, dy + i), hn::LoadU(d, scale + i), hn::LoadU(d, shift + i));
      return hn::NegMulAdd(centred, hn::LoadU(d, pull + i), direct);
    });
  }
}

template <typename T>
HWY_INLINE void channel_dx(const T* x, const T* dy, std::int64_t rows, std::int64_t channels, const T* mean,
                           const T* scale, const T* shift, const T* pull, T* dx, Stores stores) {
  if (stores == Stores::plain) {
    return channel_dx_as<Stores::plain>(x, dy, rows, channels, mean, scale, shift, pull, dx);
  }
  channel_dx_as<Stores::streaming>(x, dy, rows, channels, mean, scale, shift, pull, dx);
  hwy::FlushStream();
}

#define NORMA_CHANNEL_KERNELS(T, suffix)                                                                              \
  void channel_moments_##suffix(const T* x, std::int64_t rows, std::int64_t channels, T* mean, T* squares, T* work) { \
    channel_moments<T>(x, rows, channels, mean, squares, work);                                                       \
  }                                                                                                                   \
  void channel_apply_##suffix(const T* x, std::int64_t rows, std::int64_t channels, const T* mean, const T* scale,    \
                              const T* shift, T* y, Stores stores) {                                                  \
    channel_apply<T>(x, rows, channels, mean, scale, shift, y, stores);                                               \
  }                                                                                                                   \
  void channel_sums_##suffix(const T* x, const T* dy, std::int64_t rows, std::int64_t channels, ChannelLines<T> s,    \
                             T* sum_dy, T* sum_dy_xh) {                                                               \
    channel_sums<T>(x, dy, rows, channels, s, sum_dy, sum_dy_xh);                                                     \
  }                                                                                                                   \
  void channel_dx_##suffix(const T* x, const T* dy, std::int64_t rows, std::int64_t channels, const T* mean,          \
                           const T* scale, const T* shift, const T* pull, T* dx, Stores stores) {                     \
    channel_dx<T>(x, dy, rows, channels, mean, scale, shift, pull, dx, stores);                                       \
  }
NORMA_CHANNEL_KERNELS(float, f32)
NORMA_CHANNEL_KERNELS(double, f64)
#undef NORMA_CHANNEL_KERNELS

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma {

HWY_EXPORT(channel_moments_f32);
HWY_EXPORT(channel_moments_f64);
HWY_EXPORT(channel_apply_f32);
HWY_EXPORT(channel_apply_f64);
HWY_EXPORT(channel_sums_f32);
HWY_EXPORT(channel_sums_f64);
HWY_EXPORT(channel_dx_f32);
HWY_EXPORT(channel_dx_f64);

template <>
ChannelKernels<float> channel_kernels<float>() {
  return {NORMA_SIMD(channel_moments_f32), NORMA_SIMD(channel_apply_f32), NORMA_SIMD(channel_sums_f32),
          NORMA_SIMD(channel_dx_f32)};
}
template <>
ChannelKernels<double> channel_kernels<double>() {
  return {NORMA_SIMD(channel_moments_f64), NORMA_SIMD(channel_apply_f64), NORMA_SIMD(channel_sums_f64),
          NORMA_SIMD(channel_dx_f64)};
}

}  // namespace norma
#endif  // HWY_ONCE
