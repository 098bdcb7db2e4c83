// bf16 attention on GPUs of compute capability 9.0 with wgmma.
#pragma once

#include "ops/cuda/attention_launch.h"

namespace norma::cuda {

// Whether the launches below take the call: they are built, the current device runs them, and the shape gains by them.
bool hopper_attention_serves(const AttentionCall& call);

int attention_forward_hopper(const AttentionCall& call, Stream stream);
int attention_backward_hopper(const AttentionCall& call, Stream stream);

}  // namespace norma::cuda
