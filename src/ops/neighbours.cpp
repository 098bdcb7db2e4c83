// y[i] = left[i] * sum over the edges (i, j) of right[j] x[j]
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/neighbours.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "ops/neighbour_rows.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {
namespace neighbours_detail {

// Four vectors of one node, from channel `c`: what is added up stays in registers. Goes on from `pair` while pairs are
// the node's, in order, and returns the pair behind them, or -1 where a neighbour does not exist.
template <typename T>
HWY_INLINE std::int64_t add_four(const NeighbourRows<T>& r, std::int64_t node, std::int64_t pair, std::int64_t c) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto y0 = hn::Zero(d), y1 = hn::Zero(d), y2 = hn::Zero(d), y3 = hn::Zero(d);
  for (; pair < r.count && r.from[pair] == node; ++pair) {
    const std::int64_t j = r.to[pair];
    if (j < 0 || j >= r.nodes) return -1;
    const T* const row = r.x + j * r.width + c;
    const auto by = hn::Set(d, r.right == nullptr ? T{1} : r.right[j]);
    y0 = hn::MulAdd(by, hn::LoadU(d, row), y0);
    y1 = hn::MulAdd(by, hn::LoadU(d, row + lanes), y1);
    y2 = hn::MulAdd(by, hn::LoadU(d, row + 2 * lanes), y2);
    y3 = hn::MulAdd(by, hn::LoadU(d, row + 3 * lanes), y3);
  }
  const auto whole = hn::Set(d, r.left == nullptr ? T{1} : r.left[node]);
  T* const y = r.y + node * r.width + c;
  if (r.bias == nullptr) {
    hn::StoreU(hn::Mul(whole, y0), d, y);
    hn::StoreU(hn::Mul(whole, y1), d, y + lanes);
    hn::StoreU(hn::Mul(whole, y2), d, y + 2 * lanes);
    hn::StoreU(hn::Mul(whole, y3), d, y + 3 * lanes);
  } else {
    const T* const bias = r.bias + c;
    hn::StoreU(hn::MulAdd(whole, y0, hn::LoadU(d, bias)), d, y);
    hn::StoreU(hn::MulAdd(whole, y1, hn::LoadU(d, bias + lanes)), d, y + lanes);
    hn::StoreU(hn::MulAdd(whole, y2, hn::LoadU(d, bias + 2 * lanes)), d, y + 2 * lanes);
    hn::StoreU(hn::MulAdd(whole, y3, hn::LoadU(d, bias + 3 * lanes)), d, y + 3 * lanes);
  }
  return pair;
}

// The same for the channels behind the last four vectors.
template <typename T>
HWY_INLINE std::int64_t add_rest(const NeighbourRows<T>& r, std::int64_t node, std::int64_t pair, std::int64_t c) {
  std::int64_t end = pair;
  for (; end < r.count && r.from[end] == node; ++end) {
    if (r.to[end] < 0 || r.to[end] >= r.nodes) return -1;
  }
  const T left = r.left == nullptr ? T{1} : r.left[node];
  for_lanes<T>(r.width - c, [&](auto tag, std::int64_t i) HWY_ATTR {
    auto sum = hn::Zero(tag);
    for (std::int64_t e = pair; e < end; ++e) {
      const auto by = hn::Set(tag, r.right == nullptr ? T{1} : r.right[r.to[e]]);
      sum = hn::MulAdd(by, hn::LoadU(tag, r.x + r.to[e] * r.width + c + i), sum);
    }
    const auto whole = hn::Set(tag, left);
    T* const y = r.y + node * r.width + c + i;
    hn::StoreU(r.bias == nullptr ? hn::Mul(whole, sum) : hn::MulAdd(whole, sum, hn::LoadU(tag, r.bias + c + i)), tag,
               y);
  });
  return end;
}

// Nodes [node, end), whose pairs begin at `pair` or behind it.
template <typename T>
HWY_INLINE void add_up(const NeighbourRows<T>& r, std::int64_t pair, std::int64_t node, std::int64_t end) {
  const auto four = static_cast<std::int64_t>(4 * hn::Lanes(hn::ScalableTag<T>()));
  for (; node < end; ++node) {
    while (pair < r.count && r.from[pair] < node) ++pair;
    const std::int64_t begin = pair;
    std::int64_t c = 0;
    for (; c + four <= r.width && pair >= 0; c += four) pair = add_four(r, node, begin, c);
    if (c < r.width && pair >= 0) pair = add_rest(r, node, begin, c);
    if (pair >= 0) continue;
    std::fill_n(r.y + node * r.width, r.width, std::numeric_limits<T>::quiet_NaN());
    pair = begin;
  }
}

}  // namespace neighbours_detail

void add_neighbours_f32(const NeighbourRows<float>& rows, std::int64_t pair, std::int64_t node, std::int64_t end) {
  neighbours_detail::add_up(rows, pair, node, end);
}
void add_neighbours_f64(const NeighbourRows<double>& rows, std::int64_t pair, std::int64_t node, std::int64_t end) {
  neighbours_detail::add_up(rows, pair, node, end);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/neighbours.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"
#include "ops/check.h"
#include "ops/neighbour_edges.h"

namespace norma {

HWY_EXPORT(add_neighbours_f32);
HWY_EXPORT(add_neighbours_f64);

namespace {

void check_nodes(const Type& x) {
  check_computes(x);
  if (x.shape.rank() < 2) fail("needs [nodes, channels], but is given {}", x.str());
}

template <typename T, typename Run, typename Loop>
CpuKernel neighbour_kernel(Types in, const NeighbourInputs& which, Run* run, Loop activation_loop) {
  const std::int64_t nodes = in[0].shape[0], width = in[0].shape.elements() / nodes;
  const NeighbourTiles tiles(nodes, in[1].shape[1], width);
  const auto tile_of = [=](const Call& call, std::int64_t tile) {
    const auto input = [&](int index) { return index < 0 ? nullptr : call.in<T>(index); };
    const std::int32_t* const from = call.in<std::int32_t>(1);
    T* const y = call.out<T>(0);
    T* const z = which.activation == Activation::none || call.out<T>(1) == nullptr ? y : call.out<T>(1);
    const NeighbourRows<T> rows{call.in<T>(0),     from,  from + tiles.count, nodes,
                                tiles.count,       width, input(which.left),  input(which.right),
                                input(which.bias), z};
    const std::int64_t first = tiles.first(from, tile), end = tiles.first(from, tile + 1);
    run(rows, std::min(tiles.tiling.begin(tile), tiles.count), first, end);
    if (which.activation != Activation::none && end > first)
      activation_loop(which.activation, z + first * width, y + first * width, (end - first) * width);
  };
  return {.phases = {{.tiles = tiles.tiling.tiles, .run = tile_of}}};
}

// [nodes] as something that multiplies x[nodes, ...].
Wire of_nodes(Wire scale, const Shape& x) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(x.rank()), 1);
  dims[0] = x[0];
  return reshape(scale, Shape(std::span<const std::int64_t>(dims)));
}

}  // namespace

CpuKernel neighbour_kernel(Types in, const NeighbourInputs& which) {
  return in[0].dtype == DType::f32
             ? neighbour_kernel<float>(in, which, NORMA_SIMD(add_neighbours_f32), activation_loop_f32())
             : neighbour_kernel<double>(in, which, NORMA_SIMD(add_neighbours_f64), activation_loop_f64());
}

std::vector<Type> NeighbourSum::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_nodes(in[0]);
  check_edges(in[1]);
  return {in[0]};
}

Wires NeighbourSum::vjp(const VjpContext& context) const {
  return {neighbour_sum(context.dout[0], context.in[1]), Wire()};
}

Wires NeighbourSum::reference(std::span<const Wire> in) const {
  const Shape& s = in[0].shape();
  const std::int64_t nodes = s[0], edges = in[1].shape()[1];
  const Wire from = reshape(slice_rows(in[1], 0, 1), {edges}), to = reshape(slice_rows(in[1], 1, 1), {edges});
  const Wire added[] = {from, embedding(reshape(in[0], {nodes, s.elements() / nodes}), to)};
  return {reshape(in[0].graph().apply(std::make_shared<EmbeddingBackward>(nodes), added)[0], s)};
}

Cost NeighbourSum::cost(std::span<const Type> in, std::span<const Type> out) const {
  const double width = static_cast<double>(in[0].shape.elements() / in[0].shape[0]);
  return {.flops = static_cast<double>(in[1].shape[1]) * width, .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const NeighbourSum&, Types in, Types) { return neighbour_kernel(in, {}); }

std::vector<Type> NeighbourScaled::infer(std::span<const Type> in) const {
  check_count(in.size(), 2u + (left_ ? 1 : 0) + (right_ ? 1 : 0));
  check_nodes(in[0]);
  check_edges(in[1]);
  for (const Type& scale : in.subspan(2)) check_type("a scale of nodes", scale, {{in[0].shape[0]}, in[0].dtype});
  return {in[0]};
}

Wires NeighbourScaled::vjp(const VjpContext& context) const {
  const Wire x = context.in[0], edges = context.in[1], dy = context.dout[0];
  const auto input = [&](int index) { return index < 0 ? Wire() : context.in[static_cast<std::size_t>(index)]; };
  const auto wanted = [&](int index) { return index >= 0 && context.needed[static_cast<std::size_t>(index)]; };
  const std::int64_t nodes = x.shape()[0];
  const auto over_channels = [&](Wire product) {
    return reshape(sum_last(reshape(product, {nodes, x.shape().elements() / nodes})), {nodes});
  };
  Wires gradients(context.in.size());
  gradients[0] = neighbour_sum(dy, edges, input(right()), input(left()));
  if (wanted(left()))
    gradients[static_cast<std::size_t>(left())] = over_channels(dy * neighbour_sum(x, edges, {}, input(right())));
  if (wanted(right()))
    gradients[static_cast<std::size_t>(right())] = over_channels(x * neighbour_sum(dy, edges, {}, input(left())));
  return gradients;
}

Wires NeighbourScaled::reference(std::span<const Wire> in) const {
  const Shape& s = in[0].shape();
  const Wire x = right_ ? in[0] * of_nodes(in.back(), s) : in[0];
  const Wire sum = neighbour_sum(x, in[1]);
  return {left_ ? sum * of_nodes(in[2], s) : sum};
}

Cost NeighbourScaled::cost(std::span<const Type> in, std::span<const Type> out) const {
  const double elements = static_cast<double>(out[0].shape.elements());
  const double added = static_cast<double>(in[1].shape[1]) * elements / static_cast<double>(in[0].shape[0]);
  return {.flops = (right_ ? 2 : 1) * added + (left_ ? elements : 0), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const NeighbourScaled& op, Types in, Types) {
  return neighbour_kernel(in, {.left = op.left(), .right = op.right()});
}

Wire neighbour_sum(Wire x, Wire edges, Wire left, Wire right) {
  Wires in = {x, edges};
  if (left) in.push_back(left);
  if (right) in.push_back(right);
  const bool plain = !left && !right;
  const OpPtr op = plain ? OpPtr(std::make_shared<NeighbourSum>())
                         : std::make_shared<NeighbourScaled>(static_cast<bool>(left), static_cast<bool>(right));
  return x.graph().apply(op, in)[0];
}

}  // namespace norma
#endif  // HWY_ONCE
