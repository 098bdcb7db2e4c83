// The last pass of batch, instance and group norm and of their gradients. Lines are [samples, channels], f32; other
// tensors f32 or bf16, in whichever mixtures channel_mixture takes.
#pragma once

#include "norma/device/cuda/kernel.h"

namespace norma {

// A narrow x makes all narrow; to a wide one, y and dy may be narrow.
constexpr bool channel_mixture(bool narrow_x, bool narrow_y) { return !narrow_x || narrow_y; }

// y = f((x - center) scale + shift + added), f relu or nothing
struct ChannelApplyCall {
  cuda::Members members = {};
  std::int64_t x = 0, y = 0;
  std::int64_t added = cuda::kAbsent;  // as wide as y
  std::int64_t center = 0, scale = 0, shift = 0;
  std::int64_t samples = 0, positions = 0, channels = 0;
  bool narrow_x = false, narrow_y = false, relu = false;
};
int channel_apply(const ChannelApplyCall& call, cuda::Stream stream);

// dx = dz scale - shift - (x - center) pull, with dz = dy, or behind a relu dy where (x - center) scale + bias is
// positive.
struct ChannelPullCall {
  cuda::Members members = {};
  std::int64_t x = 0, dy = 0, dx = 0;
  std::int64_t center = 0, scale = 0, shift = 0, pull = 0;
  std::int64_t bias = cuda::kAbsent;  // [channels]
  std::int64_t samples = 0, positions = 0, channels = 0;
  bool narrow_x = false, narrow_y = false;  // x and dx; dy
  bool relu = false;
};
int channel_pull(const ChannelPullCall& call, cuda::Stream stream);

}  // namespace norma
