// RMSNorm on a GPU: y = gain x / sqrt(mean(x^2) + eps), mean over the row, or over its first channels (pRMSNorm).
#include "norms/cuda/row_choice.cuh"

namespace norma::cuda {
namespace {

struct RmsRow {
  static constexpr bool kCentred = false, kBias = false, kOneGain = false;
  __device__ static float rstd(float squares, float inverse, float eps) { return rsqrtf(squares * inverse + eps); }
  __device__ static float pull(float, float inverse, float) { return inverse; }
};

}  // namespace

int rms_norm(const RowNormCall& call, Stream stream) { return row_norm<RmsRow>(call, stream); }
int rms_norm_backward(const RowNormBackwardCall& call, Stream stream) { return row_backward<RmsRow>(call, stream); }

}  // namespace norma::cuda
