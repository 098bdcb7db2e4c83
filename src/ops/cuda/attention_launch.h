// Attention on a GPU: what a launch is told, and the launches. Semantics are those of norma/ops/attention.h; nothing
// here knows graphs, plans or sessions.
//
// A launch only enqueues; it returns 0 or a cudaError_t. Whatever it decides follows from the shape, the math and the
// number of members, so a member's results do not depend on who its neighbours are, and two runs give the same bits.
// 16-byte accesses need rows, heads and offsets that are multiples of 16 bytes; everything else works, slower, and
// gives the same bits.
#pragma once

#include <cstdint>

#include "norma/device/cuda/kernel.h"

namespace norma::cuda {

constexpr int kWidestHead = 256;

// What products are made of. All of them add up in f32.
enum class AttentionMath {
  f32,   // f32 tensors, f32 multiply-adds
  tf32,  // f32 tensors, factors rounded to tf32 on their way into the tensor cores
  bf16,  // bf16 tensors; probabilities and their gradients are rounded to bf16 as factors
};

enum class KeyMask { full, causal };

// Offsets are in bytes from a member's base, rows in elements.
struct AttentionCall {
  Members members;
  AttentionMath math = AttentionMath::f32;
  int batch = 0, queries = 0, keys = 0;
  int heads = 0, kv_heads = 0;         // each key-value head serves heads / kv_heads neighbouring query heads
  int width = 0;                       // of one head, at most kWidestHead
  std::int64_t q_row = 0, kv_row = 0;  // from one time step to the next
  KeyMask mask = KeyMask::full;
  float scale = 1;
  std::int64_t q = kAbsent;         // [batch, queries, heads, width], rows q_row apart
  std::int64_t k = kAbsent;         // [batch, keys, kv_heads, width], rows kv_row apart
  std::int64_t v = kAbsent;         // as k
  std::int64_t lengths = kAbsent;   // i32 [batch]
  std::int64_t context = kAbsent;   // [batch, queries, heads, width]; saves the backward pass work, may be absent there
  std::int64_t lse = kAbsent;       // f32 [batch, heads, queries]; an output of the forward pass, may be absent there
  std::int64_t dcontext = kAbsent;  // as context; backward only, and so are the following
  std::int64_t dq = kAbsent;        // as q; may be absent
  std::int64_t dk = kAbsent;        // as k; may be absent
  std::int64_t dv = kAbsent;        // as k; may be absent
  std::int64_t scratch = kAbsent;   // attention_backward_scratch() bytes
};

int attention_forward(const AttentionCall& call, Stream stream);
int attention_backward(const AttentionCall& call, Stream stream);

// Bytes per member, with any contents, of a call whose offsets need not be known, but for whether there are lengths.
// First is delta, one f32 per row of scores.
std::int64_t attention_backward_scratch(const AttentionCall& call);
std::int64_t attention_delta_bytes(const AttentionCall& call);

}  // namespace norma::cuda
