#include "norma/ops/neighbour_attention.h"

#include <cmath>
#include <limits>

#include "norma/graph/differentiate.h"
#include "norma/graph/graph.h"
#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/pooling.h"
#include "norma/ops/reduce.h"
#include "norma/ops/stop_gradient.h"
#include "norma/ops/views.h"
#include "ops/check.h"
#include "ops/neighbour_attention.h"
#include "ops/neighbour_edges.h"

namespace norma {
namespace {

AttentionSizes attention_sizes(const NeighbourAttentionOptions& o, Types in) {
  const Shape& x = in[0].shape;
  return {.nodes = x[0], .heads = o.heads, .width = x[1] / o.heads, .edges = in[3].shape[1], .slope = o.slope};
}

void check_inputs(const NeighbourAttentionOptions& o, Types in) {
  check_computes(in[0]);
  const Shape& x = in[0].shape;
  if (x.rank() != 2 || o.heads < 1 || x[1] % o.heads != 0)
    fail("needs [nodes, {} heads * width], but is given {}", o.heads, in[0].str());
  for (std::size_t i : {1, 2}) check_type(i == 1 ? "queries" : "keys", in[i], {{x[0], o.heads}, in[0].dtype});
  check_edges(in[3]);
}

std::string options_text(const NeighbourAttentionOptions& o) {
  return fmt::format("heads={} slope={}", o.heads, o.slope);
}

template <typename T>
CpuKernel attention_kernel(const AttentionSizes& s) {
  const NeighbourTiles tiles(s.nodes, s.edges, 2 * s.heads * (s.width + 8));
  const NeighbourAttentionFunctions<T> f = neighbour_attention_functions<T>();
  const auto run = [=](const Call& call, std::int64_t tile) {
    const std::int32_t *const from = call.in<std::int32_t>(3), *const to = from + s.edges;
    const AttentionTensors<T> t{.x = call.in<T>(0), .query = call.in<T>(1), .key = call.in<T>(2)};
    tiles.visit(from, tile, [&](std::int64_t node, std::int64_t begin, std::int64_t end) {
      T* const logs = call.out<T>(1);
      f.forward(s, t, node, to + begin, end - begin, call.out<T>(0) + node * s.heads * s.width,
                logs == nullptr ? nullptr : logs + node * s.heads);
    });
  };
  return {.phases = {{.tiles = tiles.tiling.tiles, .run = run}}};
}

template <typename T>
CpuKernel attention_backward_kernel(const AttentionSizes& s) {
  const NeighbourTiles tiles(s.nodes, s.edges, 5 * s.heads * (s.width + 8));
  const Tiling rows(s.nodes, std::max<std::int64_t>(1, 16384 / (s.heads * s.width)));
  const NeighbourAttentionFunctions<T> f = neighbour_attention_functions<T>();
  const auto tensors = [](const Call& call) {
    return AttentionTensors<T>{.x = call.in<T>(0),
                               .query = call.in<T>(1),
                               .key = call.in<T>(2),
                               .logs = call.in<T>(5),
                               .dy = call.in<T>(6),
                               .means = call.shared<T>()};
  };
  // Of every node and head dy . y, which is the mean of dy . x[j] under its softmax.
  const auto prepare = [=](const Call& call, std::int64_t tile) {
    for (std::int64_t i = rows.begin(tile) * s.heads; i < rows.end(tile) * s.heads; ++i)
      call.shared<T>()[i] = f.dot(call.in<T>(4) + i * s.width, call.in<T>(6) + i * s.width, s.width);
  };
  const auto run = [=](const Call& call, std::int64_t tile) {
    const std::int32_t *const from = call.in<std::int32_t>(3), *const to = from + s.edges;
    const AttentionTensors<T> t = tensors(call);
    tiles.visit(from, tile, [&](std::int64_t node, std::int64_t begin, std::int64_t end) {
      f.backward(s, t, node, to + begin, end - begin, call.out<T>(0) + node * s.heads * s.width,
                 call.out<T>(1) + node * s.heads, call.out<T>(2) + node * s.heads);
    });
  };
  return {.phases = {{.tiles = rows.tiles, .run = prepare}, {.tiles = tiles.tiling.tiles, .run = run}},
          .scratch_bytes = s.nodes * s.heads * static_cast<std::int64_t>(sizeof(T))};
}

Wire leaky(Wire z, double slope) { return activate(z, Activation::relu) * (1 - slope) + z * slope; }

// A number for each head that no key exceeds, so that no exponential does 1. The softmax does not depend on it.
Wire largest_keys(Wire key) {
  const std::int64_t nodes = key.shape()[0], heads = key.shape()[1];
  const auto side = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(nodes))));
  const Wire image = reshape(pad(key, 0, 0, side * side), {1, side, side, heads});
  return stop_gradient(reshape(max_pool(image, {.size = side, .stride = side}), {1, heads}));
}

}  // namespace

std::string NeighbourAttention::attributes() const { return options_text(options_); }

std::vector<Type> NeighbourAttention::infer(std::span<const Type> in) const {
  check_count(in.size(), 4);
  check_inputs(options_, in);
  return {in[0], in[1]};
}

Wires NeighbourAttention::vjp(const VjpContext& context) const {
  Wires in(context.in.begin(), context.in.end());
  in.insert(in.end(), {context.out[0], context.out[1], context.dout[0]});
  Wires gradients = context.graph().apply(std::make_shared<NeighbourAttentionBackward>(options_), in);
  gradients.emplace_back();
  return gradients;
}

Wires NeighbourAttention::reference(std::span<const Wire> in) const {
  const std::int64_t nodes = in[0].shape()[0], heads = options_.heads, width = in[0].shape()[1] / heads;
  const std::int64_t edges = in[3].shape()[1];
  const Wire from = reshape(slice_rows(in[3], 0, 1), {edges}), to = reshape(slice_rows(in[3], 1, 1), {edges});
  const auto added = [&](Wire rows) {  // over the pairs of each node; those of no node are left out
    const Wire pair[] = {from, rows};
    return slice_rows(rows.graph().apply(std::make_shared<EmbeddingBackward>(nodes + 1), pair)[0], 0, nodes);
  };
  const auto gathered = [&](Wire table, Wire ids) { return embedding(pad(table, 0, 0, nodes + 1), ids); };
  const Wire bounds = leaky(in[1] + largest_keys(in[2]), options_.slope);  // [nodes, heads]
  const Wire scores = leaky(gathered(in[1], from) + gathered(in[2], to), options_.slope);
  const Wire exponentials = exp(scores - stop_gradient(gathered(bounds, from)));  // [edges, heads]
  const Wire sums = added(exponentials);
  const Wire alone = 1.0 - step(sums);
  const Wire rows = reshape(gathered(in[0], to), {edges, heads, width}) * reshape(exponentials, {edges, heads, 1});
  const Wire mixed = reshape(added(reshape(rows, {edges, heads * width})), {nodes, heads, width});
  const Wire y = mixed * reshape(reciprocal(sums + alone), {nodes, heads, 1});
  return {reshape(y, in[0].shape()), (log(sums + alone) + stop_gradient(bounds)) * (1.0 - alone)};
}

Cost NeighbourAttention::cost(std::span<const Type> in, std::span<const Type> out) const {
  const double pairs = static_cast<double>(in[3].shape[1]), channels = static_cast<double>(in[0].shape[1]);
  return {.flops = pairs * (2 * channels + 6 * static_cast<double>(options_.heads)),
          .bytes = traffic(in, out.first(1))};
}

CpuKernel cpu_kernel(const NeighbourAttention& op, Types in, Types) {
  const AttentionSizes s = attention_sizes(op.options(), in);
  return in[0].dtype == DType::f32 ? attention_kernel<float>(s) : attention_kernel<double>(s);
}

std::string NeighbourAttentionBackward::attributes() const { return options_text(options_); }

std::vector<Type> NeighbourAttentionBackward::infer(std::span<const Type> in) const {
  check_count(in.size(), 7);
  check_inputs(options_, in);
  check_type("y", in[4], in[0]);
  check_type("the logs", in[5], in[1]);
  check_type("the gradient", in[6], in[0]);
  return {in[0], in[1], in[2]};
}

Wires NeighbourAttentionBackward::reference(std::span<const Wire> in) const {
  // Two of x, query and key may be one wire; views tell their gradients apart.
  Wires forward(in.begin(), in.begin() + 4);
  for (std::size_t i = 0; i < 3; ++i) {
    const Wire view[] = {forward[i]};
    forward[i] = in[0].graph().apply(std::make_shared<Reshape>(view[0].shape()), view)[0];
  }
  const Wire out[] = {NeighbourAttention(options_).reference(forward)[0]}, dout[] = {in[6]};
  return pull_back(out, dout, std::span<const Wire>(forward).first(3));
}

Cost NeighbourAttentionBackward::cost(std::span<const Type> in, std::span<const Type> out) const {
  const double pairs = static_cast<double>(in[3].shape[1]), channels = static_cast<double>(in[0].shape[1]);
  return {.flops = pairs * (6 * channels + 16 * static_cast<double>(options_.heads)), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const NeighbourAttentionBackward& op, Types in, Types) {
  const AttentionSizes s = attention_sizes(op.options(), in);
  return in[0].dtype == DType::f32 ? attention_backward_kernel<float>(s) : attention_backward_kernel<double>(s);
}

Wire neighbour_attention(Wire x, Wire query, Wire key, Wire edges, const NeighbourAttentionOptions& options) {
  const Wire in[] = {x, query, key, edges};
  return x.graph().apply(std::make_shared<NeighbourAttention>(options), in)[0];
}

}  // namespace norma
