// How batch, instance and group norm see a tensor, and where their arguments are.
#pragma once

#include <utility>

#include "norma/device/cpu/kernel.h"
#include "norma/norms/channel.h"

namespace norma {

// x as [samples, positions, groups, width].
struct ChannelExtent {
  std::int64_t samples, positions, channels, groups, width;

  ChannelExtent(const ChannelNormOptions& options, const Shape& x)
      : samples(options.region == Region::sample ? x[0] : 1),
        positions(x.rows() / samples),
        channels(x.channels()),
        groups(options.groups == 0 ? channels : options.groups),
        width(channels / groups) {}
  std::int64_t elements() const { return positions * width; }  // that one mean is taken over
};

// Positions of arguments, -1 = absent.
struct ChannelArguments {
  int running = -1, gain = -1, bias = -1, added = -1, count = 2;
  explicit ChannelArguments(const ChannelNormOptions& options) {
    if (options.region == Region::running) running = std::exchange(count, count + 2);
    if (has_gain(options.affine)) gain = count++;
    if (has_bias(options.affine)) bias = count++;
    if (options.adds) added = count++;
  }
};
struct ChannelBackwardArguments {
  int gain = -1, bias = -1, count = 5, dgain = -1, dbias = -1;
  explicit ChannelBackwardArguments(const ChannelNormOptions& options) {
    int out = 1;
    if (has_gain(options.affine)) gain = count++;
    if (options.relu && has_bias(options.affine)) bias = count++;
    if (has_gain(options.affine)) dgain = out++;
    if (has_bias(options.affine)) dbias = out++;
  }
};

// Kernels for x of this type.
CpuKernel channel_norm_cpu(const ChannelNormOptions& options, const Type& x);
CpuKernel channel_norm_backward_cpu(const ChannelNormOptions& options, const Type& x);

}  // namespace norma
