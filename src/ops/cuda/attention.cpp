// Attention and its gradient as programs of a CUDA session.
#include "norma/ops/attention.h"

#include "norma/core/error.h"
#include "ops/attention_kernel.h"
#include "ops/cuda/attention_launch.h"

namespace norma {
namespace {

int qkv_inputs(QkvLayout layout) { return layout == QkvLayout::packed ? 1 : 3; }

// What follows from the types alone. Log-sum-exps are f32 whatever the other tensors are.
cuda::AttentionCall attention_call(const AttentionShape& s, DType dtype) {
  NORMA_ASSERT(s.width <= cuda::kWidestHead);
  cuda::AttentionCall call;
  call.math = dtype == DType::bf16 ? cuda::AttentionMath::bf16 : cuda::AttentionMath::f32;
  call.batch = static_cast<int>(s.batch);
  call.queries = static_cast<int>(s.queries);
  call.keys = static_cast<int>(s.keys);
  call.heads = static_cast<int>(s.heads);
  call.kv_heads = static_cast<int>(s.kv_heads);
  call.width = static_cast<int>(s.width);
  call.q_row = s.q_row;
  call.kv_row = s.kv_row;
  call.mask = s.mask == Mask::causal ? cuda::KeyMask::causal : cuda::KeyMask::full;
  call.scale = static_cast<float>(s.scale);
  return call;
}

// Bytes from queries to keys and from keys to values of a packed wire.
struct PackedSteps {
  std::int64_t to_keys, to_values;
  PackedSteps(const AttentionShape& s, DType dtype)
      : to_keys(s.heads * s.width * static_cast<std::int64_t>(size_of(dtype))),
        to_values(s.kv_heads * s.width * static_cast<std::int64_t>(size_of(dtype))) {}
};

void place_inputs(cuda::AttentionCall& call, const cuda::Call& at, QkvLayout layout, PackedSteps steps, int extra) {
  const int count = qkv_inputs(layout);
  call.members = at.members;
  if (call.math == cuda::AttentionMath::f32 && at.math == cuda::Math::tf32) call.math = cuda::AttentionMath::tf32;
  call.q = at.in(0);
  call.k = layout == QkvLayout::packed ? call.q + steps.to_keys : at.in(1);
  call.v = layout == QkvLayout::packed ? call.k + steps.to_values : at.in(2);
  if (at.inputs > count + extra) call.lengths = at.in(count);
}

}  // namespace

bool cuda_serves(const Attention& op, Types in, Types) {
  return attention_shape(op.layout(), op.options(), in).width <= cuda::kWidestHead;
}
bool cuda_serves(const AttentionBackward& op, Types in, Types) {
  return attention_shape(op.layout(), op.options(), in).width <= cuda::kWidestHead;
}

cuda::Program cuda_kernel(const Attention& op, Types in, Types) {
  const QkvLayout layout = op.layout();
  const AttentionShape s = attention_shape(layout, op.options(), in);
  const cuda::AttentionCall shape = attention_call(s, in[0].dtype);
  const PackedSteps steps(s, in[0].dtype);
  return {.launch = [=](const cuda::Call& at) {
    cuda::AttentionCall call = shape;
    place_inputs(call, at, layout, steps, 0);
    call.context = at.out(0);
    call.lse = at.out(1);
    return cuda::attention_forward(call, at.stream);
  }};
}

cuda::Program cuda_kernel(const AttentionBackward& op, Types in, Types) {
  const QkvLayout layout = op.layout();
  const AttentionShape s = attention_shape(layout, op.options(), in);
  const cuda::AttentionCall shape = attention_call(s, in[0].dtype);
  const PackedSteps steps(s, in[0].dtype);
  const bool context = op.context() == SavedContext::given;
  const bool padded = static_cast<int>(in.size()) > qkv_inputs(layout) + (context ? 3 : 2);
  cuda::AttentionCall with_lengths = shape;
  if (padded) with_lengths.lengths = 0;
  return {.launch =
              [=](const cuda::Call& at) {
                cuda::AttentionCall call = shape;
                place_inputs(call, at, layout, steps, context ? 3 : 2);
                if (context) call.context = at.in(at.inputs - 3);
                call.lse = at.in(at.inputs - 2);
                call.dcontext = at.in(at.inputs - 1);
                call.dq = at.out(0);
                call.dk = layout == QkvLayout::packed ? call.dq + steps.to_keys : at.out(1);
                call.dv = layout == QkvLayout::packed ? call.dk + steps.to_values : at.out(2);
                call.scratch = at.scratch;
                return cuda::attention_backward(call, at.stream);
              },
          .scratch_bytes = cuda::attention_backward_scratch(with_lengths)};
}

}  // namespace norma
