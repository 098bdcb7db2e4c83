// The launches of attention, one set per kind of arithmetic, each compiled by itself.
#pragma once

#include "ops/cuda/attention_launch.h"

namespace norma::cuda {

int attention_forward_f32(const AttentionCall& call, Stream stream);
int attention_forward_tf32(const AttentionCall& call, Stream stream);
int attention_forward_bf16(const AttentionCall& call, Stream stream);

int attention_backward_f32(const AttentionCall& call, Stream stream);
int attention_backward_tf32(const AttentionCall& call, Stream stream);
int attention_backward_bf16(const AttentionCall& call, Stream stream);

}  // namespace norma::cuda
