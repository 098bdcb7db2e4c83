// The launches of the backward pass: one for short sequences, two for others.
#pragma once

#include "ops/cuda/attention_dkv.cuh"
#include "ops/cuda/attention_dq.cuh"
#include "ops/cuda/attention_whole.cuh"

namespace norma::cuda::attention {

template <class Math>
int launch_backward(const AttentionCall& call, Stream stream) {
  if (fits_whole(call)) return launch_whole<Math>(call, stream);
  const int status = launch_dq<Math>(call, stream);
  return status != 0 || (call.dk < 0 && call.dv < 0) ? status : launch_dkv<Math>(call, stream);
}

}  // namespace norma::cuda::attention
