// Attention as ops: shape rules, the reference composition, and the tiles that the kernels run on.
#include "norma/ops/attention.h"

#include <cmath>

#include "norma/device/cpu/kernel.h"
#include "norma/graph/differentiate.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"
#include "ops/attention_kernel.h"
#include "ops/check.h"

namespace norma {
namespace {

std::string describe(QkvLayout layout, const AttentionOptions& options) {
  std::string text = fmt::format("heads={} kv_heads={} mask={}", options.heads,
                                 options.kv_heads == 0 ? options.heads : options.kv_heads, name_of(options.mask));
  if (options.scale) text += fmt::format(" scale={}", *options.scale);
  return layout == QkvLayout::packed ? text + " packed" : text;
}

std::size_t qkv_count(QkvLayout layout) { return layout == QkvLayout::packed ? 1 : 3; }

// Inputs of the backward pass behind those of the forward one.
std::size_t saved_count(SavedContext context) { return context == SavedContext::given ? 3 : 2; }

void check_heads(const AttentionOptions& options, std::int64_t kv_heads) {
  if (options.heads < 1 || kv_heads < 1) fail("needs at least one head, not {} and {}", options.heads, kv_heads);
  if (options.heads % kv_heads != 0) {
    fail("{} query heads are not divisible by {} key-value heads", options.heads, kv_heads);
  }
}

}  // namespace

AttentionShape attention_shape(QkvLayout layout, const AttentionOptions& options, std::span<const Type> in) {
  AttentionShape s;
  s.heads = options.heads;
  s.kv_heads = options.kv_heads == 0 ? options.heads : options.kv_heads;
  s.mask = options.mask;
  check_heads(options, s.kv_heads);
  const Shape& q = in[0].shape;
  if (q.rank() != 3) fail("queries must be [batch, time, channels] but are {}", q.str());
  s.batch = q[0];
  s.queries = q[1];
  if (layout == QkvLayout::packed) {
    const std::int64_t parts = s.heads + 2 * s.kv_heads;
    if (q[2] % parts != 0) {
      fail("width {} is not divisible by {} heads ({} of queries, {} of keys, {} of values)", q[2], parts, s.heads,
           s.kv_heads, s.kv_heads);
    }
    s.width = q[2] / parts;
    s.keys = s.queries;
    s.q_row = s.kv_row = q[2];
  } else {
    if (q[2] % s.heads != 0) fail("width {} is not divisible by {} heads", q[2], s.heads);
    s.width = q[2] / s.heads;
    s.q_row = q[2];
    s.kv_row = s.kv_heads * s.width;
    const Shape& k = in[1].shape;
    s.keys = k.rank() == 3 ? k[1] : 0;
    if (k.rank() != 3 || k[0] != s.batch || k[2] != s.kv_row) {
      fail("keys must be [{}, time, {}] ({} heads of width {}) but are {}", s.batch, s.kv_row, s.kv_heads, s.width,
           k.str());
    }
    check_type("values", in[2], {k, in[0].dtype});
    check_same_dtype(in[0], in[1]);
    if (s.mask == Mask::causal && s.keys != s.queries) {
      fail("a causal mask needs as many keys as queries, but there are {} keys and {} queries", s.keys, s.queries);
    }
  }
  s.scale = options.scale.value_or(1.0 / std::sqrt(static_cast<double>(s.width)));
  // Enough (batch, head) pairs keep every core busy; few pairs are split by queries, each repeating the copy of k, v.
  s.query_block = s.batch * s.kv_heads >= 16 ? s.queries : 64;
  return s;
}

namespace {

void check_lengths(const AttentionShape& s, const Type& lengths) {
  check_type("lengths", lengths, {{s.batch}, DType::i32});
}

double pairs(const AttentionShape& s) {
  const double queries = static_cast<double>(s.queries), keys = static_cast<double>(s.keys);
  const double of_one_head = s.mask == Mask::causal ? queries * (queries + 1) / 2 : queries * keys;
  return of_one_head * static_cast<double>(s.batch * s.heads);
}

Type lse_type(const AttentionShape& s, DType dtype) { return {{s.batch, s.heads, s.queries}, dtype}; }
Type context_type(const AttentionShape& s, DType dtype) { return {{s.batch, s.queries, s.heads * s.width}, dtype}; }

template <typename T>
AttentionArrays<T> input_arrays(const Call& call, QkvLayout layout, const AttentionShape& s, bool with_lengths) {
  AttentionArrays<T> arrays;
  arrays.q = call.in<T>(0);
  arrays.k = layout == QkvLayout::packed ? arrays.q + s.heads * s.width : call.in<T>(1);
  arrays.v = layout == QkvLayout::packed ? arrays.k + s.kv_heads * s.width : call.in<T>(2);
  if (with_lengths) arrays.lengths = call.in<std::int32_t>(static_cast<int>(qkv_count(layout)));
  return arrays;
}

struct Heads {
  Wire q, k, v;  // [batch, heads, time, width]
};

// [batch, time, heads * width] -> [batch, heads, time, width], key-value heads repeated for their group.
Wire split_heads(Wire x, std::int64_t heads, std::int64_t repeats) {
  const Shape& shape = x.shape();
  const std::int64_t batch = shape[0], time = shape[1], width = shape[2] / heads;
  Wire split = reshape(x, {batch, time, heads, width});
  if (repeats > 1) {
    split = broadcast_to(reshape(x, {batch, time, heads, 1, width}), {batch, time, heads, repeats, width});
    split = reshape(split, {batch, time, heads * repeats, width});
  }
  return permute(split, {0, 2, 1, 3});
}

Heads split_all(Wire q, Wire k, Wire v, const AttentionShape& s) {
  const std::int64_t group = s.heads / s.kv_heads;
  return {split_heads(q, s.heads, 1), split_heads(k, s.kv_heads, group), split_heads(v, s.kv_heads, group)};
}

// [batch, heads, time, width] -> [batch, time, heads * width]
Wire merge_heads(Wire x) {
  const Shape& shape = x.shape();
  return reshape(permute(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

std::vector<Type> types_of(std::span<const Wire> wires) {
  std::vector<Type> types;
  for (const Wire& wire : wires) types.push_back(wire.type());
  return types;
}

}  // namespace

std::string Attention::attributes() const { return describe(layout_, options_); }

void Attention::choose(Widths& widths) const {
  widths.all(true);
  widths.out[1] = false;
}

void AttentionBackward::choose(Widths& widths) const {
  widths.all(true);
  widths.in[widths.in.size() - 2] = false;
}

std::vector<Type> Attention::infer(std::span<const Type> in) const {
  const std::size_t count = qkv_count(layout_);
  if (in.size() != count && in.size() != count + 1) fail("takes {} inputs and lengths, not {}", count, in.size());
  check_computes(in[0]);
  const AttentionShape s = attention_shape(layout_, options_, in);
  if (in.size() > count) check_lengths(s, in[count]);
  return {context_type(s, in[0].dtype), lse_type(s, in[0].dtype)};
}

Wires Attention::vjp(const VjpContext& context) const {
  if (context.dout[1]) return Op::vjp(context);
  Wires in(context.in.begin(), context.in.end());
  in.push_back(context.out[1]);
  in.push_back(context.dout[0]);
  Wires gradients = context.graph().apply(std::make_shared<AttentionBackward>(layout_, options_), in);
  gradients.resize(context.in.size());  // none for lengths
  return gradients;
}

// The log-sum-exp is written for rows that see a key, in which key 0 is always seen: lse = s_0 - log p_0.
Wires Attention::reference(std::span<const Wire> in) const {
  const AttentionShape s = attention_shape(layout_, options_, types_of(in));
  const std::int64_t q_width = s.heads * s.width, kv_width = s.kv_heads * s.width;
  const bool packed = layout_ == QkvLayout::packed;
  const Wire q = packed ? slice_last(in[0], 0, q_width) : in[0];
  const Wire k = packed ? slice_last(in[0], q_width, kv_width) : in[1];
  const Wire v = packed ? slice_last(in[0], q_width + kv_width, kv_width) : in[2];
  const Wire lengths = in.size() > qkv_count(layout_) ? in.back() : Wire();
  const Heads heads = split_all(q, k, v, s);
  const Wire scores = matmul(heads.q, heads.k, Transpose::no, Transpose::yes) * s.scale;
  const Wire p = softmax(scores, s.mask, lengths);
  const Wire lse = slice_last(scores, 0, 1) - log(slice_last(p, 0, 1));
  return {merge_heads(matmul(p, heads.v)), reshape(lse, {s.batch, s.heads, s.queries})};
}

Cost Attention::cost(std::span<const Type> in, std::span<const Type> out) const {
  const AttentionShape s = attention_shape(layout_, options_, in);
  const double flops = 2 * 2 * static_cast<double>(s.width) * pairs(s);
  return {.flops = flops, .bytes = traffic(in, out), .products = flops};
}

CpuKernel cpu_kernel(const Attention& op, Types in, Types) {
  const AttentionShape s = attention_shape(op.layout(), op.options(), in);
  const auto kernel = [&]<typename T>(T) -> CpuKernel {
    const AttentionFunctions<T> f = attention_forward_functions<T>();
    const bool with_lengths = in.size() > qkv_count(op.layout());
    const QkvLayout layout = op.layout();
    return {.phases = {{s.forward_tiles(),
                        [=](const Call& call, std::int64_t tile) {
                          AttentionArrays<T> arrays = input_arrays<T>(call, layout, s, with_lengths);
                          arrays.context = call.out<T>(0);
                          arrays.lse_out = call.out<T>(1);
                          f.run(s, arrays, tile, call.worker_scratch);
                        }}},
            .worker_bytes = f.worker_bytes(s)};
  };
  return in[0].dtype == DType::f32 ? kernel(0.0f) : kernel(0.0);
}

std::string AttentionBackward::attributes() const {
  return describe(layout_, options_) + (context_ == SavedContext::given ? " context" : "");
}

std::vector<Type> AttentionBackward::infer(std::span<const Type> in) const {
  const std::size_t count = qkv_count(layout_), saved = saved_count(context_);
  if (in.size() != count + saved && in.size() != count + saved + 1) {
    fail("takes {} inputs, lengths, {} saved ones and the gradient, not {}", count, saved - 1, in.size());
  }
  check_computes(in[0]);
  const AttentionShape s = attention_shape(layout_, options_, in);
  if (in.size() == count + saved + 1) check_lengths(s, in[count]);
  if (context_ == SavedContext::given) check_type("context", in[in.size() - 3], context_type(s, in[0].dtype));
  check_type("log-sum-exp", in[in.size() - 2], lse_type(s, in[0].dtype));
  check_type("gradient by the context", in[in.size() - 1], context_type(s, in[0].dtype));
  return {in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count)};
}

Wires AttentionBackward::reference(std::span<const Wire> in) const {
  Graph& graph = in[0].graph();
  // q, k and v may be one wire; views tell their gradients apart.
  Wires forward(in.begin(), in.end() - static_cast<std::ptrdiff_t>(saved_count(context_)));
  Wires wrt;
  for (std::size_t i = 0; i < qkv_count(layout_); ++i) {
    const Wire x[] = {forward[i]};
    forward[i] = graph.apply(std::make_shared<Reshape>(x[0].shape()), x)[0];
    wrt.push_back(forward[i]);
  }
  const Wire out[] = {Attention(layout_, options_).reference(forward)[0]}, dout[] = {in.back()};
  return pull_back(out, dout, wrt);
}

Cost AttentionBackward::cost(std::span<const Type> in, std::span<const Type> out) const {
  const AttentionShape s = attention_shape(layout_, options_, in);
  return {.flops = 5 * 2 * static_cast<double>(s.width) * pairs(s), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const AttentionBackward& op, Types in, Types) {
  const AttentionShape s = attention_shape(op.layout(), op.options(), in);
  const auto kernel = [&]<typename T>(T) -> CpuKernel {
    const AttentionFunctions<T> f = attention_backward_functions<T>();
    const bool with_lengths = in.size() > qkv_count(op.layout()) + saved_count(op.context());
    const QkvLayout layout = op.layout();
    return {.phases = {{s.backward_tiles(),
                        [=](const Call& call, std::int64_t tile) {
                          AttentionArrays<T> arrays = input_arrays<T>(call, layout, s, with_lengths);
                          arrays.lse = call.in<T>(call.inputs - 2);
                          arrays.dcontext = call.in<T>(call.inputs - 1);
                          arrays.dq = call.out<T>(0);
                          arrays.dk = layout == QkvLayout::packed ? arrays.dq + s.heads * s.width : call.out<T>(1);
                          arrays.dv = layout == QkvLayout::packed ? arrays.dk + s.kv_heads * s.width : call.out<T>(2);
                          f.run(s, arrays, tile, call.worker_scratch);
                        }}},
            .worker_bytes = f.worker_bytes(s)};
  };
  return in[0].dtype == DType::f32 ? kernel(0.0f) : kernel(0.0);
}

Wire attention(Wire q, Wire k, Wire v, const AttentionOptions& options, Wire lengths) {
  Wires in = {q, k, v};
  if (lengths) in.push_back(lengths);
  return q.graph().apply(std::make_shared<Attention>(QkvLayout::separate, options), in)[0];
}

Wire attention_packed(Wire qkv, const AttentionOptions& options, Wire lengths) {
  Wires in = {qkv};
  if (lengths) in.push_back(lengths);
  return qkv.graph().apply(std::make_shared<Attention>(QkvLayout::packed, options), in)[0];
}

ScoredAttention attention_with_scores(Wire q, Wire k, Wire v, const AttentionOptions& options, Wire previous,
                                      Wire lengths) {
  const Wire in[] = {q, k, v};
  AttentionShape s;
  try {
    s = attention_shape(QkvLayout::separate, options, types_of(in));
    if (previous) check_type("previous scores", previous.type(), {{s.batch, s.heads, s.queries, s.keys}, q.dtype()});
  } catch (const Error& error) {
    fail("attention_with_scores: {}", error.what());
  }
  const Heads heads = split_all(q, k, v, s);
  // Scaling q is a pass over fewer numbers than scaling the scores.
  Wire scores = matmul(heads.q * s.scale, heads.k, Transpose::no, Transpose::yes);
  if (previous) scores = scores + previous;
  return {merge_heads(matmul(softmax(scores, s.mask, lengths), heads.v)), scores};
}

}  // namespace norma
