// Attention and its gradient as cases, with a plain reference in double that shares nothing with the kernels.
#pragma once

#include <string>
#include <vector>

#include "bench/cuda/kernel_case.h"
#include "ops/cuda/attention_launch.h"

namespace norma::bench {

enum class AttentionWires { separate, packed };
// What inputs hold besides numbers. Hidden: NaN in keys and values beyond each length. Future: NaN and infinities at
// single times, which a causal mask must keep from earlier queries, and from keys that a query does not see.
enum class AttentionPoison { none, hidden, future };
enum class AttentionOutputs { all, first, second, third, no_lse };  // of the gradients; no_lse: forward without

struct AttentionSetup {
  cuda::AttentionMath math = cuda::AttentionMath::f32;
  int batch = 1, queries = 1, keys = 0;  // 0: as queries
  int heads = 1, kv_heads = 0;           // 0: as heads
  int width = 1;
  cuda::KeyMask mask = cuda::KeyMask::causal;
  AttentionWires wires = AttentionWires::packed;
  std::vector<int> lengths = {};  // none: not given
  double scale = 0;               // 0: 1 / sqrt(width)
  AttentionPoison poison = AttentionPoison::none;
  AttentionOutputs outputs = AttentionOutputs::all;
  std::int64_t shift = 0;  // bytes, of every tensor against 256
  bool context = false;    // given to the backward pass

  int key_count() const { return keys == 0 ? queries : keys; }
  int kv_count() const { return kv_heads == 0 ? heads : kv_heads; }
  double factor() const;
};

KernelCase attention_forward_case(const AttentionSetup& setup);
KernelCase attention_backward_case(const AttentionSetup& setup);

}  // namespace norma::bench
