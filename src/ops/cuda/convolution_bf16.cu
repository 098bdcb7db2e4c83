#include "ops/cuda/convolution_gemm.cuh"

namespace norma::cuda {

int convolve_bf16(const ConvolutionLaunch& launch, const ConvolutionCall& call, Stream stream) {
  return convolution::launch_convolution<convolution::Bf16Math>(launch, call, stream);
}

}  // namespace norma::cuda
