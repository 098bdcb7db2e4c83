// The last pass of batch, instance and group norm and of their gradients. Lines are [samples, channels], f32.
#pragma once

#include "norma/device/cuda/kernel.h"

namespace norma {

// y = (x - center) scale + shift
struct ChannelApplyCall {
  cuda::Members members = {};
  std::int64_t x = 0, y = 0;
  std::int64_t center = 0, scale = 0, shift = 0;
  std::int64_t samples = 0, positions = 0, channels = 0;
};
int channel_apply(const ChannelApplyCall& call, cuda::Stream stream);

// dx = dy scale - shift - (x - center) pull
struct ChannelPullCall {
  cuda::Members members = {};
  std::int64_t x = 0, dy = 0, dx = 0;
  std::int64_t center = 0, scale = 0, shift = 0, pull = 0;
  std::int64_t samples = 0, positions = 0, channels = 0;
};
int channel_pull(const ChannelPullCall& call, cuda::Stream stream);

}  // namespace norma
