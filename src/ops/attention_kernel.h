// What the attention kernels are told: sizes, strides and pointers.
#pragma once

#include <cstdint>
#include <span>

#include "norma/core/dtype.h"
#include "norma/ops/attention.h"

namespace norma {

struct AttentionShape {
  std::int64_t batch = 0, queries = 0, keys = 0;
  std::int64_t heads = 0, kv_heads = 0;
  std::int64_t width = 0;              // of one head
  std::int64_t q_row = 0, kv_row = 0;  // elements from one time step to the next
  Mask mask = Mask::full;
  double scale = 1;
  std::int64_t query_block = 0;  // queries per tile of the forward pass

  std::int64_t query_blocks() const { return (queries + query_block - 1) / query_block; }
  std::int64_t forward_tiles() const { return batch * kv_heads * query_blocks(); }
  std::int64_t backward_tiles() const { return batch * kv_heads; }

  // Keys of sample b that may be seen at all.
  std::int64_t visible_keys(const std::int32_t* lengths, std::int64_t b) const {
    if (lengths == nullptr) return keys;
    const std::int64_t length = lengths[b];
    return length < 0 ? 0 : (length < keys ? length : keys);
  }
};

// Sizes from the types of q, k, v or qkv; throws Error when they do not fit the options.
AttentionShape attention_shape(QkvLayout layout, const AttentionOptions& options, std::span<const Type> in);

template <typename T>
struct AttentionArrays {
  const T* q = nullptr;                   // [batch, queries, heads, width], rows q_row apart
  const T* k = nullptr;                   // [batch, keys, kv_heads, width], rows kv_row apart
  const T* v = nullptr;                   // as k
  const std::int32_t* lengths = nullptr;  // [batch] or null
  T* context = nullptr;                   // [batch, queries, heads, width]; forward only
  const T* lse = nullptr;                 // [batch, heads, queries]; backward only
  T* lse_out = nullptr;                   // as lse; forward only, null when not wanted
  const T* dcontext = nullptr;            // as context; backward only
  T* dq = nullptr;                        // as q; null when not wanted
  T* dk = nullptr;                        // as k; null when not wanted
  T* dv = nullptr;                        // as k; null when not wanted
};

// Instruction set chosen at run time; tile in [0, forward_tiles()) or [0, backward_tiles()).
template <typename T>
struct AttentionFunctions {
  using Run = void (*)(const AttentionShape&, const AttentionArrays<T>&, std::int64_t tile, std::byte* worker);
  Run run = nullptr;
  std::int64_t (*worker_bytes)(const AttentionShape&) = nullptr;
};

template <typename T>
AttentionFunctions<T> attention_forward_functions();
template <typename T>
AttentionFunctions<T> attention_backward_functions();

}  // namespace norma
