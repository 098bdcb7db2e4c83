#include "norma/ops/segments.h"

#include <algorithm>

#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/one_hot.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"
#include "ops/check.h"
#include "ops/neighbour_max.h"

namespace norma {
namespace {

// A tile is a block of segments, which finds its rows by bisection and takes them in order.
template <typename T>
CpuKernel segment_kernel(Segmented kind, std::int64_t segments, std::int64_t rows, std::int64_t width) {
  const std::int64_t work = std::max<std::int64_t>(1, rows / segments) * width;
  const Tiling tiling(segments, std::max<std::int64_t>(1, 16384 / work));
  const auto run = [=](const Call& call, std::int64_t tile) {
    const T* const x = call.in<T>(0);                          // [rows, width]
    const std::int32_t* const ids = call.in<std::int32_t>(1);  // [rows]
    std::int32_t* const picks = kind == Segmented::max ? call.out<std::int32_t>(1) : nullptr;
    const std::int32_t* at = std::lower_bound(ids, ids + rows, tiling.begin(tile));
    for (std::int64_t segment = tiling.begin(tile); segment < tiling.end(tile); ++segment) {
      T* const y = call.out<T>(0) + segment * width;
      std::int32_t* const picked = picks == nullptr ? nullptr : picks + segment * width;
      start_largest(y, picked, width, rows);
      const std::int32_t* const first = at;
      for (; at != ids + rows && *at == segment; ++at) {
        const T* const row = x + (at - ids) * width;
        if (kind == Segmented::max) {
          keep_larger(row, static_cast<std::int32_t>(at - ids), at == first, y, picked, width);
        } else {
          for (std::int64_t c = 0; c < width; ++c) y[c] += row[c];
        }
      }
      if (kind != Segmented::mean || at == first) continue;
      const T share = T{1} / static_cast<T>(at - first);
      for (std::int64_t c = 0; c < width; ++c) y[c] *= share;
    }
  };
  return {.phases = {{.tiles = tiling.tiles, .run = run}}};
}

Shape with_rows(const Shape& shape, std::int64_t rows) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[0] = rows;
  return Shape(std::span<const std::int64_t>(dims));
}

// Sums by elementary ops; rows of the id `segments` go to a row of their own, which is left out.
Wire sums_of(Wire x, Wire ids, std::int64_t segments) {
  const Wire in[] = {ids, reshape(x, {x.shape()[0], x.shape().elements() / x.shape()[0]})};
  const Wire all = x.graph().apply(std::make_shared<EmbeddingBackward>(segments + 1), in)[0];
  return reshape(slice_rows(all, 0, segments), with_rows(x.shape(), segments));
}

// 1 / rows of each segment, 1 where there are none; of a shape that multiplies x[segments, ...].
Wire shares_of(Wire ids, std::int64_t segments, const Shape& x, DType dtype) {
  const Wire counts = sums_of(ids.graph().fill({{ids.shape()[0], 1}, dtype}, 1), ids, segments);
  const Wire shares = reciprocal(counts + (1.0 - step(counts)));
  std::vector<std::int64_t> dims(static_cast<std::size_t>(x.rank()), 1);
  dims[0] = segments;
  return reshape(shares, Shape(std::span<const std::int64_t>(dims)));
}

}  // namespace

std::string SegmentReduce::attributes() const {
  const char* const kind = kind_ == Segmented::sum ? "sum" : kind_ == Segmented::mean ? "mean" : "max";
  return fmt::format("{} segments={}", kind, segments_);
}

std::vector<Type> SegmentReduce::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_computes(in[0]);
  if (in[0].shape.rank() < 2) fail("needs [rows, channels], but is given {}", in[0].str());
  check_type("ids of segments", in[1], {{in[0].shape[0]}, DType::i32});
  if (segments_ < 1) fail("{} segments; expected at least 1", segments_);
  const Shape y = with_rows(in[0].shape, segments_);
  if (kind_ != Segmented::max) return {{y, in[0].dtype}};
  return {{y, in[0].dtype}, {y, DType::i32}};
}

Wires SegmentReduce::vjp(const VjpContext& context) const {
  const Wire x = context.in[0], ids = context.in[1], dy = context.dout[0];
  if (kind_ == Segmented::max) return {picked_rows(PickedRows::Way::scatter, x.shape()[0], dy, context.out[1]), Wire()};
  if (kind_ == Segmented::sum) return {segment_spread(dy, ids), Wire()};
  return {segment_spread(dy * shares_of(ids, segments_, dy.shape(), dy.dtype()), ids), Wire()};
}

Wires SegmentReduce::reference(std::span<const Wire> in) const {
  const Wire x = in[0], ids = in[1];
  if (kind_ == Segmented::max) {
    const Wire members = permute(one_hot(ids, segments_ + 1, -1, x.dtype()), {1, 0});
    const Wires found = largest_by_membership(x, slice_rows(members, 0, segments_));
    const Shape y = with_rows(x.shape(), segments_);
    return {reshape(found[0], y), reshape(found[1], y)};
  }
  const Wire sums = sums_of(x, ids, segments_);
  return {kind_ == Segmented::sum ? sums : sums * shares_of(ids, segments_, sums.shape(), x.dtype())};
}

Cost SegmentReduce::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = static_cast<double>(in[0].shape.elements()), .bytes = traffic(in, out.first(1))};
}

CpuKernel cpu_kernel(const SegmentReduce& op, Types in, Types) {
  const std::int64_t rows = in[0].shape[0], width = in[0].shape.elements() / rows;
  return in[0].dtype == DType::f32 ? segment_kernel<float>(op.kind(), op.segments(), rows, width)
                                   : segment_kernel<double>(op.kind(), op.segments(), rows, width);
}

Wire segment_reduce(Segmented kind, Wire x, Wire ids, std::int64_t segments) {
  const Wire in[] = {x, ids};
  return x.graph().apply(std::make_shared<SegmentReduce>(kind, segments), in)[0];
}

Wire segment_spread(Wire x, Wire ids) {
  const std::int64_t segments = x.shape()[0], width = x.shape().elements() / segments;
  const Wire table = pad(reshape(x, {segments, width}), 0, 0, segments + 1);
  return reshape(embedding(table, ids), with_rows(x.shape(), ids.shape()[0]));
}

}  // namespace norma
