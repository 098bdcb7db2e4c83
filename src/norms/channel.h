// The inner loops of channel norms, chosen for this machine. Lines are [channels]; x, dy, y, dx are [rows, channels].
#pragma once

#include <cstdint>

#include "norms/stores.h"

namespace norma {

// Distance of two work lines that are read and written side by side: an odd number of cache lines apart, so that a load
// of one does not wait for a store at the same place of the other's page.
template <typename T>
std::int64_t channel_line_stride(std::int64_t channels) {
  return (align_up(channels * static_cast<std::int64_t>(sizeof(T))) + 17 * kArenaAlignment) /
         static_cast<std::int64_t>(sizeof(T));
}

template <typename T>
struct ChannelLines {
  const T* mean;
  const T* rstd;
};

template <typename T>
struct ChannelKernels {
  // Mean and sum of squared distances from it, of each channel; `work` holds two lines, channel_line_stride apart.
  void (*moments)(const T* x, std::int64_t rows, std::int64_t channels, T* mean, T* squares, T* work);
  // y = (x - mean) scale + shift
  void (*apply)(const T* x, std::int64_t rows, std::int64_t channels, const T* mean, const T* scale, const T* shift,
                T* y, Stores stores);
  // sum_dy += dy, sum_dy_xh += dy (x - mean) rstd
  void (*sums)(const T* x, const T* dy, std::int64_t rows, std::int64_t channels, ChannelLines<T> statistics, T* sum_dy,
               T* sum_dy_xh);
  // dx = dy scale - shift - (x - mean) pull
  void (*dx)(const T* x, const T* dy, std::int64_t rows, std::int64_t channels, const T* mean, const T* scale,
             const T* shift, const T* pull, T* dx, Stores stores);
};

template <typename T>
ChannelKernels<T> channel_kernels();

}  // namespace norma
