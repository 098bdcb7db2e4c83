// y[i] = left[i] * sum over the edges (i, j) of right[j] x[j]
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/neighbours.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {
namespace neighbours_detail {

// One node: the rows `to[0, count)` of x, each times its own number, added up in order. What is added up stays in
// registers, four vectors at a time.
template <typename T>
HWY_INLINE void add_up(const T* x, const std::int32_t* to, std::int64_t count, T left, const T* right, T* y,
                       std::int64_t width) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t c = 0;
  for (; c + 4 * lanes <= width; c += 4 * lanes) {
    auto y0 = hn::Zero(d), y1 = hn::Zero(d), y2 = hn::Zero(d), y3 = hn::Zero(d);
    for (std::int64_t e = 0; e < count; ++e) {
      const T* const row = x + to[e] * width + c;
      const auto by = hn::Set(d, right == nullptr ? T{1} : right[to[e]]);
      y0 = hn::MulAdd(by, hn::LoadU(d, row), y0);
      y1 = hn::MulAdd(by, hn::LoadU(d, row + lanes), y1);
      y2 = hn::MulAdd(by, hn::LoadU(d, row + 2 * lanes), y2);
      y3 = hn::MulAdd(by, hn::LoadU(d, row + 3 * lanes), y3);
    }
    const auto whole = hn::Set(d, left);
    hn::StoreU(hn::Mul(whole, y0), d, y + c);
    hn::StoreU(hn::Mul(whole, y1), d, y + c + lanes);
    hn::StoreU(hn::Mul(whole, y2), d, y + c + 2 * lanes);
    hn::StoreU(hn::Mul(whole, y3), d, y + c + 3 * lanes);
  }
  for_lanes<T>(width - c, [&](auto tag, std::int64_t i) HWY_ATTR {
    auto sum = hn::Zero(tag);
    for (std::int64_t e = 0; e < count; ++e) {
      const auto by = hn::Set(tag, right == nullptr ? T{1} : right[to[e]]);
      sum = hn::MulAdd(by, hn::LoadU(tag, x + to[e] * width + c + i), sum);
    }
    hn::StoreU(hn::Mul(hn::Set(tag, left), sum), tag, y + c + i);
  });
}

}  // namespace neighbours_detail

void add_neighbours_f32(const float* x, const std::int32_t* to, std::int64_t count, float left, const float* right,
                        float* y, std::int64_t width) {
  neighbours_detail::add_up(x, to, count, left, right, y, width);
}
void add_neighbours_f64(const double* x, const std::int32_t* to, std::int64_t count, double left, const double* right,
                        double* y, std::int64_t width) {
  neighbours_detail::add_up(x, to, count, left, right, y, width);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <limits>

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

template <typename T, typename Run>
CpuKernel neighbour_kernel(Types in, int left_index, int right_index, Run* run) {
  const std::int64_t nodes = in[0].shape[0], width = in[0].shape.elements() / nodes;
  const NeighbourTiles tiles(nodes, in[1].shape[1], width);
  const auto tile_of = [=](const Call& call, std::int64_t tile) {
    const T* const x = call.in<T>(0);  // [nodes, width]
    const std::int32_t *const from = call.in<std::int32_t>(1), *const to = from + tiles.count;
    const T* const left = left_index < 0 ? nullptr : call.in<T>(left_index);
    const T* const right = right_index < 0 ? nullptr : call.in<T>(right_index);
    tiles.visit(from, tile, [&](std::int64_t node, std::int64_t begin, std::int64_t end) {
      T* const y = call.out<T>(0) + node * width;
      const bool all = std::all_of(to + begin, to + end, [&](std::int32_t j) { return j >= 0 && j < nodes; });
      if (!all) {
        std::fill_n(y, width, std::numeric_limits<T>::quiet_NaN());
        return;
      }
      run(x, to + begin, end - begin, left == nullptr ? T{1} : left[node], right, y, width);
    });
  };
  return {.phases = {{.tiles = tiles.tiling.tiles, .run = tile_of}}};
}

CpuKernel neighbour_kernel(Types in, int left, int right) {
  return in[0].dtype == DType::f32 ? neighbour_kernel<float>(in, left, right, NORMA_SIMD(add_neighbours_f32))
                                   : neighbour_kernel<double>(in, left, right, NORMA_SIMD(add_neighbours_f64));
}

// [nodes] as something that multiplies x[nodes, ...].
Wire of_nodes(Wire scale, const Shape& x) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(x.rank()), 1);
  dims[0] = x[0];
  return reshape(scale, Shape(std::span<const std::int64_t>(dims)));
}

}  // namespace

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

CpuKernel cpu_kernel(const NeighbourSum&, Types in, Types) { return neighbour_kernel(in, -1, -1); }

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

CpuKernel cpu_kernel(const NeighbourScaled& op, Types in, Types) { return neighbour_kernel(in, op.left(), op.right()); }

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
