#include "ops/cuda/convolution_hopper.h"

#ifdef NORMA_SM90A
#include "ops/cuda/convolution_hopper.cuh"
#endif

namespace norma::cuda {

#ifdef NORMA_SM90A

bool hopper_convolution(const ConvolutionLaunch& launch, const ConvolutionCall& call) {
  if (launch.tile != ConvolutionTile::n64 && launch.tile != ConvolutionTile::n128) return false;
  if (launch.pass != ConvolutionPass::weights && call.depth % kHopperDepth != 0) return false;
  if (launch.pass == ConvolutionPass::data && call.stride > 1 && call.classes == 1) return false;
  int device = 0, major = 0, minor = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess && major == 9 &&
         minor == 0;
}

int convolve_hopper(const ConvolutionLaunch& launch, const ConvolutionCall& call, Stream stream) {
  using enum ConvolutionPass;
  switch (launch.pass) {
    case forward: return convolution::launch_hopper_pass<forward>(launch.tile, call, stream);
    case data: return convolution::launch_hopper_pass<data>(launch.tile, call, stream);
    case weights: return convolution::launch_hopper_pass<weights>(launch.tile, call, stream);
  }
  return cudaErrorInvalidValue;
}

#else

bool hopper_convolution(const ConvolutionLaunch&, const ConvolutionCall&) { return false; }
int convolve_hopper(const ConvolutionLaunch&, const ConvolutionCall&, Stream) { return cudaErrorNotSupported; }

#endif

}  // namespace norma::cuda
