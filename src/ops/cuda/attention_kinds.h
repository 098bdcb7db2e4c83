// The launches of attention, one set per kind of arithmetic, each compiled by itself. Each enqueues one kernel.
#pragma once

#include "ops/cuda/attention_launch.h"

namespace norma::cuda {

int attention_forward_f32(const AttentionCall& call, Stream stream);
int attention_forward_tf32(const AttentionCall& call, Stream stream);
int attention_forward_bf16(const AttentionCall& call, Stream stream);

// dq, and in the scratch what the gradients by keys and values need.
int attention_dq_f32(const AttentionCall& call, Stream stream);
int attention_dq_tf32(const AttentionCall& call, Stream stream);
int attention_dq_bf16(const AttentionCall& call, Stream stream);

int attention_dkv_f32(const AttentionCall& call, Stream stream);
int attention_dkv_tf32(const AttentionCall& call, Stream stream);
int attention_dkv_bf16(const AttentionCall& call, Stream stream);

}  // namespace norma::cuda
