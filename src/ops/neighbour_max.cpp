// The largest of a node's neighbours or of a segment's rows, channel by channel, and rows by number, which its
// derivative is made of.
#include "ops/neighbour_max.h"

#include <cmath>
#include <limits>

#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/neighbours.h"
#include "norma/ops/one_hot.h"
#include "norma/ops/pooling.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"
#include "ops/check.h"
#include "ops/neighbour_edges.h"

namespace norma {
namespace {

template <typename T>
CpuKernel neighbour_max_kernel(std::int64_t nodes, std::int64_t width, std::int64_t edges) {
  const NeighbourTiles tiles(nodes, edges, width);
  const auto run = [=](const Call& call, std::int64_t tile) {
    const std::int32_t *const from = call.in<std::int32_t>(1), *const to = from + edges;
    tiles.visit(from, tile, [&](std::int64_t node, std::int64_t begin, std::int64_t end) {
      std::int32_t* const picks = call.out<std::int32_t>(1);
      T* const y = call.out<T>(0) + node * width;
      start_largest(y, picks == nullptr ? nullptr : picks + node * width, width, nodes);
      for (std::int64_t e = begin; e < end; ++e) {
        if (to[e] < 0 || to[e] >= nodes) {
          std::fill_n(y, width, std::numeric_limits<T>::quiet_NaN());
          return;
        }
        keep_larger(call.in<T>(0) + to[e] * width, to[e], e == begin, y,
                    picks == nullptr ? nullptr : picks + node * width, width);
      }
    });
  };
  return {.phases = {{.tiles = tiles.tiling.tiles, .run = run}}};
}

template <typename T>
CpuKernel picked_gather_kernel(std::int64_t rows, std::int64_t picked, std::int64_t width) {
  const Tiling tiling(picked, std::max<std::int64_t>(1, 16384 / width));
  const auto run = [=](const Call& call, std::int64_t tile) {
    for (std::int64_t i = tiling.begin(tile) * width; i < tiling.end(tile) * width; ++i) {
      const std::int64_t row = call.in<std::int32_t>(1)[i];
      call.out<T>(0)[i] = row >= 0 && row < rows ? call.in<T>(0)[row * width + i % width] : T{0};
    }
  };
  return {.phases = {{.tiles = tiling.tiles, .run = run}}};
}

// Tiles are blocks of columns, each walking all picks in order.
template <typename T>
CpuKernel picked_scatter_kernel(std::int64_t rows, std::int64_t picked, std::int64_t width) {
  const Tiling columns(width, 16, 16);
  const auto run = [=](const Call& call, std::int64_t tile) {
    const std::int64_t begin = columns.begin(tile), end = columns.end(tile);
    for (std::int64_t row = 0; row < rows; ++row)
      std::fill(call.out<T>(0) + row * width + begin, call.out<T>(0) + row * width + end, T{0});
    for (std::int64_t i = 0; i < picked; ++i) {
      for (std::int64_t c = begin; c < end; ++c) {
        const std::int64_t row = call.in<std::int32_t>(1)[i * width + c];
        if (row >= 0 && row < rows) call.out<T>(0)[row * width + c] += call.in<T>(0)[i * width + c];
      }
    }
  };
  return {.phases = {{.tiles = columns.tiles, .run = run}}};
}

std::int64_t width_of(const Shape& shape) { return shape.elements() / shape[0]; }

}  // namespace

Wires largest_by_membership(Wire x, Wire members) {
  constexpr double kFar = 1e30;  // below any number that the rows may have
  const std::int64_t rows = x.shape()[0], width = width_of(x.shape()), sets = members.shape()[0];
  const auto side = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(rows + 1))));
  const std::int64_t all = side * side;
  const Wire among = step(members);  // [sets, rows]
  // The largest of a whole image whose pixels are the rows. Behind them one that only an empty set finds.
  const Wire none = pad(x.graph().fill({{1, 1}, x.dtype()}, 0.5), 1, rows, all);
  const Wire far = (pad(among, 1, 0, all) + none - 1.0) * kFar;
  const Wire values =
      reshape(pad(reshape(x, {rows, width}), 0, 0, all), {1, all, width}) + reshape(far, {sets, all, 1});
  const Wire image[] = {reshape(values, {sets, side, side, width})};
  const Wires found = x.graph().apply(std::make_shared<MaxPool>(PoolingOptions{.size = side, .stride = side}), image);
  return {reshape(found[0], {sets, width}) * step(sum_last(among)), reshape(found[1], {sets, width})};
}

std::vector<Type> NeighbourMax::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_computes(in[0]);
  check_edges(in[1]);
  if (in[0].shape.rank() < 2) fail("needs [nodes, channels], but is given {}", in[0].str());
  return {in[0], {in[0].shape, DType::i32}};
}

Wires NeighbourMax::vjp(const VjpContext& context) const {
  const Shape& s = context.in[0].shape();
  return {picked_rows(PickedRows::Way::scatter, s[0], context.dout[0], context.out[1]), Wire()};
}

Wires NeighbourMax::reference(std::span<const Wire> in) const {
  const Shape& s = in[0].shape();
  const std::int64_t nodes = s[0], edges = in[1].shape()[1];
  const Wire from = reshape(slice_rows(in[1], 0, 1), {edges}), to = reshape(slice_rows(in[1], 1, 1), {edges});
  // No pair with a node that is none is added.
  const Wire members[] = {from, one_hot(to, nodes, static_cast<std::int32_t>(nodes), in[0].dtype())};
  const Wire dense = in[0].graph().apply(std::make_shared<EmbeddingBackward>(nodes), members)[0];
  const Wires found = largest_by_membership(in[0], dense);
  return {reshape(found[0], s), reshape(found[1], s)};
}

Cost NeighbourMax::cost(std::span<const Type> in, std::span<const Type> out) const {
  const double width = static_cast<double>(width_of(in[0].shape));
  return {.flops = static_cast<double>(in[1].shape[1]) * width, .bytes = traffic(in, out.first(1))};
}

CpuKernel cpu_kernel(const NeighbourMax&, Types in, Types) {
  const std::int64_t nodes = in[0].shape[0], width = width_of(in[0].shape), edges = in[1].shape[1];
  return in[0].dtype == DType::f32 ? neighbour_max_kernel<float>(nodes, width, edges)
                                   : neighbour_max_kernel<double>(nodes, width, edges);
}

std::vector<Type> PickedRows::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_computes(in[0]);
  const Shape& picks = in[1].shape;
  if (in[1].dtype != DType::i32 || picks.rank() < 2) fail("picks must be i32[rows, channels] but are {}", in[1].str());
  std::vector<std::int64_t> dims(picks.dims().begin(), picks.dims().end());
  dims[0] = rows_;
  const Type all{Shape(std::span<const std::int64_t>(dims)), in[0].dtype}, picked{picks, in[0].dtype};
  const bool gather = way_ == Way::gather;
  check_type(gather ? "x" : "dy", in[0], gather ? all : picked);
  return {gather ? picked : all};
}

Wires PickedRows::vjp(const VjpContext& context) const {
  const Way other = way_ == Way::gather ? Way::scatter : Way::gather;
  return {picked_rows(other, rows_, context.dout[0], context.in[1]), Wire()};
}

Wires PickedRows::reference(std::span<const Wire> in) const {
  const Shape& s = in[1].shape();
  const std::int64_t picked = s[0], width = width_of(s);
  const Wire which =  // [picked, width, rows]
      slice_last(one_hot(reshape(in[1], {picked, width}), rows_ + 1, -1, in[0].dtype()), 0, rows_);
  if (way_ == Way::gather) {
    const Wire columns = permute(reshape(in[0], {rows_, width}), {1, 0});  // [width, rows]
    return {reshape(sum_last(which * reshape(columns, {1, width, rows_})), s)};
  }
  const Wire sums = sum_to(which * reshape(in[0], {picked, width, 1}), {1, width, rows_});
  const Type given[] = {in[0].type(), in[1].type()};
  return {reshape(permute(reshape(sums, {width, rows_}), {1, 0}), infer(given)[0].shape)};
}

Cost PickedRows::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = way_ == Way::gather ? 0.0 : static_cast<double>(in[0].shape.elements()), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const PickedRows& op, Types in, Types) {
  const std::int64_t picked = in[1].shape[0], width = width_of(in[1].shape);
  const auto kernel = [&]<typename T>(T) {
    return op.way() == PickedRows::Way::gather ? picked_gather_kernel<T>(op.rows(), picked, width)
                                               : picked_scatter_kernel<T>(op.rows(), picked, width);
  };
  return in[0].dtype == DType::f32 ? kernel(float{}) : kernel(double{});
}

Wire picked_rows(PickedRows::Way way, std::int64_t rows, Wire x, Wire picks) {
  const Wire in[] = {x, picks};
  return x.graph().apply(std::make_shared<PickedRows>(way, rows), in)[0];
}

Wire neighbour_max(Wire x, Wire edges) {
  const Wire in[] = {x, edges};
  return x.graph().apply(std::make_shared<NeighbourMax>(), in)[0];
}

}  // namespace norma
