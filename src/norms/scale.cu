// ScaleNorm on a GPU: y = g0 x / max(||x||, eps), one learned g0.
#include "norms/cuda/row_choice.cuh"

namespace norma::cuda {
namespace {

struct ScaleRow {
  static constexpr bool kCentred = false, kBias = false, kOneGain = true;
  __device__ static float rstd(float squares, float, float eps) {
    const float norm = sqrtf(squares);
    return 1.0f / (norm < eps ? eps : norm);  // NaN stays NaN
  }
  __device__ static float pull(float rstd, float, float eps) {
    return rstd < 1.0f / eps ? 1.0f : 0.0f;  // a row shorter than eps is only multiplied
  }
};

}  // namespace

int scale_norm(const RowNormCall& call, Stream stream) { return row_norm<ScaleRow>(call, stream); }
int scale_norm_backward(const RowNormBackwardCall& call, Stream stream) { return row_backward<ScaleRow>(call, stream); }

}  // namespace norma::cuda
