// Conversion between floating dtypes, rounded to nearest, ties to even.
#include <bit>
#include <cmath>
#include <type_traits>

#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/views.h"
#include "ops/check.h"

namespace norma {

std::vector<Type> Cast::infer(std::span<const Type> in) const {
  check_count(in.size(), 1);
  if (!is_floating(in[0].dtype) || !is_floating(dtype_)) {
    fail("converts between floating dtypes, but {} to {} was asked", in[0].str(), name_of(dtype_));
  }
  return {{in[0].shape, dtype_}};
}

Wires Cast::vjp(const VjpContext& context) const { return {cast(context.dout[0], context.in[0].dtype())}; }

Cost Cast::cost(std::span<const Type> in, std::span<const Type> out) const { return {.bytes = traffic(in, out)}; }

namespace {

template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, BFloat16>) {
    return static_cast<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, BFloat16> && std::is_same_v<From, double>) {
    // Through float, rounded to odd: a second rounding to nearest could otherwise break a tie the wrong way.
    const float nearest = static_cast<float>(value);
    const bool exact = !(static_cast<double>(nearest) != value) || !std::isfinite(nearest);
    std::uint32_t word = std::bit_cast<std::uint32_t>(nearest);
    if (!exact) {
      if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --word;
      word |= 1u;
    }
    return BFloat16(std::bit_cast<float>(word));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return BFloat16(value);
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
CpuKernel cast_kernel(std::int64_t count) {
  const Tiling tiling(count, 16384, 64);
  return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                        const From* x = call.in<From>(0);
                        To* y = call.out<To>(0);
                        for (std::int64_t i = tiling.begin(tile); i < tiling.end(tile); ++i) y[i] = convert<To>(x[i]);
                      }}}};
}

template <typename From>
CpuKernel cast_from(DType to, std::int64_t count) {
  switch (to) {
    case DType::f64: return cast_kernel<From, double>(count);
    case DType::bf16: return cast_kernel<From, BFloat16>(count);
    default: return cast_kernel<From, float>(count);
  }
}

}  // namespace

CpuKernel cpu_kernel(const Cast& op, Types in, Types) {
  const std::int64_t count = in[0].shape.elements();
  switch (in[0].dtype) {
    case DType::f64: return cast_from<double>(op.dtype(), count);
    case DType::bf16: return cast_from<BFloat16>(op.dtype(), count);
    default: return cast_from<float>(op.dtype(), count);
  }
}

Wire cast(Wire x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<Cast>(dtype), in)[0];
}

}  // namespace norma
