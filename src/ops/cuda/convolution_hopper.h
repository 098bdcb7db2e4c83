// bf16 convolutions of many channels on GPUs of compute capability 9.0 with wgmma. The .cu file is built for sm_90a.
#pragma once

#include "ops/cuda/convolution.h"

namespace norma::cuda {

constexpr int kHopperDepth = 64;  // of a step along k

// Whether the current device has it, the tile is one of 64 or 128 columns, and sums over channels go by whole steps;
// gradients by strided images come in classes.
bool hopper_convolution(const ConvolutionLaunch& launch, const ConvolutionCall& call);
int convolve_hopper(const ConvolutionLaunch& launch, const ConvolutionCall& call, Stream stream);

}  // namespace norma::cuda
