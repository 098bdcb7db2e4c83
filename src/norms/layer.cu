// LayerNorm on a GPU: y = gain (x - mean) / sqrt(var + eps) + bias, mean and (biased) var over the row.
#include "norms/cuda/row_choice.cuh"

namespace norma::cuda {
namespace {

struct LayerRow {
  static constexpr bool kCentred = true, kBias = true, kOneGain = false;
  __device__ static float rstd(float squares, float inverse, float eps) { return rsqrtf(squares * inverse + eps); }
  __device__ static float pull(float, float inverse, float) { return inverse; }
};

}  // namespace

int layer_norm(const RowNormCall& call, Stream stream) { return row_norm<LayerRow>(call, stream); }
int layer_norm_backward(const RowNormBackwardCall& call, Stream stream) { return row_backward<LayerRow>(call, stream); }

}  // namespace norma::cuda
