#include "ops/cuda/convolution_gemm.cuh"

namespace norma::cuda {

int convolve_f32(const ConvolutionLaunch& launch, const ConvolutionCall& call, Stream stream) {
  return convolution::launch_convolution<convolution::F32Math>(launch, call, stream);
}

}  // namespace norma::cuda
