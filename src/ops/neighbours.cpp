#include "norma/ops/neighbours.h"

#include <algorithm>
#include <limits>

#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/embedding.h"
#include "norma/ops/views.h"
#include "ops/check.h"

namespace norma {
namespace {

// A tile is a block of nodes, which finds its edges by bisection; each node adds its neighbours in the order of edges.
template <typename T>
CpuKernel neighbour_kernel(std::int64_t nodes, std::int64_t width, std::int64_t edges) {
  const std::int64_t work = std::max<std::int64_t>(1, edges / nodes) * width;
  const Tiling tiling(nodes, std::max<std::int64_t>(1, 16384 / work));
  const auto run = [=](const Call& call, std::int64_t tile) {
    const T* const x = call.in<T>(0);  // [nodes, width]
    const std::int32_t *const from = call.in<std::int32_t>(1), *const to = from + edges;
    const std::int64_t begin = tiling.begin(tile), end = tiling.end(tile);
    const std::int32_t* at = std::lower_bound(from, to, begin);
    for (std::int64_t node = begin; node < end; ++node) {
      T* const y = call.out<T>(0) + node * width;
      std::fill_n(y, width, T{0});
      for (; at != to && *at == node; ++at) {
        const std::int64_t neighbour = at[edges];
        if (neighbour < 0 || neighbour >= nodes) {
          std::fill_n(y, width, std::numeric_limits<T>::quiet_NaN());
          continue;
        }
        const T* const row = x + neighbour * width;
        for (std::int64_t c = 0; c < width; ++c) y[c] += row[c];
      }
    }
  };
  return {.phases = {{.tiles = tiling.tiles, .run = run}}};
}

}  // namespace

std::vector<Type> NeighbourSum::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_computes(in[0]);
  if (in[0].shape.rank() < 2) fail("needs [nodes, channels], but is given {}", in[0].str());
  if (in[1].dtype != DType::i32 || in[1].shape.rank() != 2 || in[1].shape[0] != 2)
    fail("edges must be i32[2, edges] but are {}", in[1].str());
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

CpuKernel cpu_kernel(const NeighbourSum&, Types in, Types) {
  const std::int64_t nodes = in[0].shape[0], width = in[0].shape.elements() / nodes, edges = in[1].shape[1];
  return in[0].dtype == DType::f32 ? neighbour_kernel<float>(nodes, width, edges)
                                   : neighbour_kernel<double>(nodes, width, edges);
}

Wire neighbour_sum(Wire x, Wire edges) {
  const Wire in[] = {x, edges};
  return x.graph().apply(std::make_shared<NeighbourSum>(), in)[0];
}

}  // namespace norma
