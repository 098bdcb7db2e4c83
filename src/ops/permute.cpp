// The axes of a tensor in another order, for any dtype.
#include <algorithm>
#include <array>
#include <numeric>

#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/views.h"
#include "ops/check.h"

namespace norma {

std::string Permute::attributes() const { return fmt::format("order={}", fmt::join(order_, ",")); }

std::vector<Type> Permute::infer(std::span<const Type> in) const {
  check_count(in.size(), 1);
  const Shape& shape = in[0].shape;
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  std::array<bool, Shape::kMaxRank> seen{};
  bool fits = static_cast<int>(order_.size()) == shape.rank();
  for (std::size_t i = 0; fits && i < order_.size(); ++i) {
    fits = order_[i] >= 0 && order_[i] < shape.rank() && !seen[static_cast<std::size_t>(order_[i])];
    if (!fits) break;
    seen[static_cast<std::size_t>(order_[i])] = true;
    dims[i] = shape[order_[i]];
  }
  if (!fits) fail("[{}] is not an order of the {} axes of {}", fmt::join(order_, ", "), shape.rank(), shape.str());
  return {{Shape(std::span<const std::int64_t>(dims.data(), order_.size())), in[0].dtype}};
}

Wires Permute::vjp(const VjpContext& context) const {
  std::vector<int> inverse(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) inverse[static_cast<std::size_t>(order_[i])] = static_cast<int>(i);
  return {permute(context.dout[0], inverse)};
}

Cost Permute::cost(std::span<const Type> in, std::span<const Type> out) const { return {.bytes = traffic(in, out)}; }

namespace {

// y's rows in order; `strides` and `last` are x's, in elements, in the order of y's axes.
template <typename Word>
CpuKernel permute_kernel(const Shape& shape, std::array<std::int64_t, Shape::kMaxRank> strides) {
  const int leading = std::max(0, shape.rank() - 1);
  const std::int64_t width = shape.channels(),
                     last = shape.rank() == 0 ? 1 : strides[static_cast<std::size_t>(leading)];
  const Tiling tiling(shape.rows(), std::max<std::int64_t>(1, 8192 / width));
  return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                        for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                          std::int64_t offset = 0, rest = row;
                          for (int axis = leading - 1; axis >= 0; --axis) {
                            offset += rest % shape[axis] * strides[static_cast<std::size_t>(axis)];
                            rest /= shape[axis];
                          }
                          const Word* x = call.in<Word>(0) + offset;
                          Word* y = call.out<Word>(0) + row * width;
                          if (last == 1) {
                            std::copy_n(x, width, y);
                          } else {
                            for (std::int64_t i = 0; i < width; ++i) y[i] = x[i * last];
                          }
                        }
                      }}}};
}

}  // namespace

CpuKernel cpu_kernel(const Permute& op, Types in, Types out) {
  std::array<std::int64_t, Shape::kMaxRank> source{}, strides{};
  std::int64_t stride = 1;
  for (int axis = in[0].shape.rank() - 1; axis >= 0; --axis) {
    source[static_cast<std::size_t>(axis)] = stride;
    stride *= in[0].shape[axis];
  }
  for (std::size_t i = 0; i < op.order().size(); ++i) strides[i] = source[static_cast<std::size_t>(op.order()[i])];
  switch (size_of(in[0].dtype)) {
    case 2: return permute_kernel<std::uint16_t>(out[0].shape, strides);
    case 4: return permute_kernel<std::uint32_t>(out[0].shape, strides);
    default: return permute_kernel<std::uint64_t>(out[0].shape, strides);
  }
}

Wire permute(Wire x, std::span<const int> order) {
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<Permute>(std::vector<int>(order.begin(), order.end())), in)[0];
}

Wire permute(Wire x, std::initializer_list<int> order) {
  return permute(x, std::span<const int>(order.begin(), order.size()));
}

Wire swap_axes(Wire x, int a, int b) {
  std::vector<int> order(static_cast<std::size_t>(x.shape().rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<std::size_t>(resolve_axis(a, x.shape()))],
            order[static_cast<std::size_t>(resolve_axis(b, x.shape()))]);
  return permute(x, order);
}

}  // namespace norma
