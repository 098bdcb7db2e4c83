// bf16 attention on GPUs of compute capability 9.0 with wgmma. The .cu files are the only ones built for sm_90a;
// without NORMA_SM90A they serve nothing.
#pragma once

#include "ops/cuda/attention_launch.h"

namespace norma::cuda {

// Which of the launches below serve a call on the current device, and gain by it.
enum class HopperAttention { none, tiles, whole };
HopperAttention hopper_attention(const AttentionCall& call);

int attention_forward_hopper(const AttentionCall& call, Stream stream);
int attention_backward_hopper(const AttentionCall& call, Stream stream);
// A part of the calls with tiles, backward, after delta was found: probabilities are computed once. Bytes of scratch
// that this takes besides delta, however many members there are; 0 where it is never chosen.
bool attention_is_once(const AttentionCall& call);
std::int64_t attention_once_scratch(const AttentionCall& call);
int attention_backward_hopper_once(const AttentionCall& call, Stream stream);
int attention_forward_hopper_whole(const AttentionCall& call, Stream stream);
int attention_backward_hopper_whole(const AttentionCall& call, Stream stream);

}  // namespace norma::cuda
