// z = a x + b y
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scaled_add.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

// One row. A stride of 0 repeats a number, 1 walks a vector.
template <typename T>
HWY_INLINE void scaled_add_typed(const T* x, const T* a, int a_stride, const T* y, const T* b, int b_stride, T* z,
                                 std::int64_t n) {
  for_lanes<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto left = a_stride == 0 ? hn::Set(d, *a) : hn::LoadU(d, a + i);
    const auto right = b_stride == 0 ? hn::Set(d, *b) : hn::LoadU(d, b + i);
    hn::StoreU(hn::MulAdd(left, hn::LoadU(d, x + i), hn::Mul(right, hn::LoadU(d, y + i))), d, z + i);
  });
}

void scaled_add_f32(const float* x, const float* a, int as, const float* y, const float* b, int bs, float* z,
                    std::int64_t n) {
  scaled_add_typed(x, a, as, y, b, bs, z, n);
}
void scaled_add_f64(const double* x, const double* a, int as, const double* y, const double* b, int bs, double* z,
                    std::int64_t n) {
  scaled_add_typed(x, a, as, y, b, bs, z, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/scaled_add.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(scaled_add_f32);
HWY_EXPORT(scaled_add_f64);

std::string ScaledAdd::attributes() const {
  return scale_x_ && scale_y_ ? "a x + b y" : (scale_x_ ? "a x + y" : (scale_y_ ? "x + b y" : "x + y"));
}

std::vector<Type> ScaledAdd::infer(std::span<const Type> in) const {
  check_count(in.size(), 2u + (scale_x_ ? 1 : 0) + (scale_y_ ? 1 : 0));
  check_computes(in[0]);
  check_type("the second term", in[1], in[0]);
  for (const Type& scale : in.subspan(2)) {
    check_same_dtype(in[0], scale);
    const bool fits = scale.shape.elements() == 1 || scale.shape == Shape{in[0].shape.channels()};
    if (!fits) fail("a scale must be one number or [{}] but is {}", in[0].shape.channels(), scale.str());
  }
  return {in[0]};
}

Wires ScaledAdd::reference(std::span<const Wire> in) const {
  const Wire x = scale_x_ ? in[0] * in[2] : in[0];
  const Wire y = scale_y_ ? in[1] * in.back() : in[1];
  return {x + y};
}

Cost ScaledAdd::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = 3.0 * static_cast<double>(out[0].shape.elements()), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const ScaledAdd& op, Types in, Types) {
  const int a_index = op.scales_x() ? 2 : -1, b_index = op.scales_y() ? (op.scales_x() ? 3 : 2) : -1;
  const auto stride = [&](int index) {
    return index >= 0 && in[static_cast<std::size_t>(index)].shape.elements() > 1 ? 1 : 0;
  };
  const int a_stride = stride(a_index), b_stride = stride(b_index);
  // Without vectors the whole tensor is one row.
  const bool one_row = a_stride == 0 && b_stride == 0;
  const std::int64_t width = one_row ? 1 : in[0].shape.channels();
  const Tiling tiling(in[0].shape.elements() / width, std::max<std::int64_t>(1, 16384 / width), one_row ? 64 : 1);
  const auto kernel = [&]<typename T>(auto* run) -> CpuKernel {
    return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                          static constexpr T kOne = 1;
                          const T* a = a_index < 0 ? &kOne : call.in<T>(a_index);
                          const T* b = b_index < 0 ? &kOne : call.in<T>(b_index);
                          const std::int64_t begin = tiling.begin(tile), end = tiling.end(tile);
                          const std::int64_t length = one_row ? end - begin : width;
                          for (std::int64_t row = begin; row < end; row += one_row ? length : 1) {
                            const std::int64_t at = row * width;
                            run(call.in<T>(0) + at, a, a_stride, call.in<T>(1) + at, b, b_stride, call.out<T>(0) + at,
                                length);
                          }
                        }}}};
  };
  return in[0].dtype == DType::f32 ? kernel.operator()<float>(NORMA_SIMD(scaled_add_f32))
                                   : kernel.operator()<double>(NORMA_SIMD(scaled_add_f64));
}

Wire scaled_add(Wire x, Wire a, Wire y, Wire b) {
  Wires in = {x, y};
  if (a) in.push_back(a);
  if (b) in.push_back(b);
  return x.graph().apply(std::make_shared<ScaledAdd>(static_cast<bool>(a), static_cast<bool>(b)), in)[0];
}

}  // namespace norma
#endif  // HWY_ONCE
