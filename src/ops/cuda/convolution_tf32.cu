#include "ops/cuda/convolution_gemm.cuh"

namespace norma::cuda {

int convolve_tf32(const ConvolutionLaunch& launch, const ConvolutionCall& call, Stream stream) {
  return convolution::launch_convolution<convolution::Tf32Math>(launch, call, stream);
}

}  // namespace norma::cuda
