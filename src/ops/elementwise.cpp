// y = f(x) and z = a (.) b with broadcasting.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "norma/ops/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

template <Unary F, class D, class V = hn::Vec<D>>
HWY_INLINE V apply_unary(D d, V x) {
  using T = hn::TFromD<D>;
  const V one = hn::Set(d, T{1});
  if constexpr (F == Unary::neg) return hn::Neg(x);
  if constexpr (F == Unary::exp) return exp(d, x);
  if constexpr (F == Unary::log) return log(d, x);
  if constexpr (F == Unary::sqrt) return hn::Sqrt(x);
  if constexpr (F == Unary::rsqrt) return hn::Div(one, hn::Sqrt(x));
  if constexpr (F == Unary::reciprocal) return hn::Div(one, x);
  if constexpr (F == Unary::square) return hn::Mul(x, x);
  if constexpr (F == Unary::tanh) return tanh(d, x);
  if constexpr (F == Unary::erf) return erf(d, x);
  if constexpr (F == Unary::sigmoid) return sigmoid(d, x);
  if constexpr (F == Unary::step)
    return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), one));
  // Of timesteps, which are few and large: the C library's reduction of arguments is worth more than speed.
  if constexpr (F == Unary::sin) return by_lane(d, x, [](T v) HWY_ATTR { return std::sin(v); });
  if constexpr (F == Unary::cos) return by_lane(d, x, [](T v) HWY_ATTR { return std::cos(v); });
}

template <Binary F, class V>
HWY_INLINE V apply_binary(V a, V b) {
  if constexpr (F == Binary::add) return hn::Add(a, b);
  if constexpr (F == Binary::sub) return hn::Sub(a, b);
  if constexpr (F == Binary::mul) return hn::Mul(a, b);
  if constexpr (F == Binary::div) return hn::Div(a, b);
}

template <Unary F, typename T>
HWY_INLINE void unary_loop(const T* x, T* y, std::int64_t n) {
  for_lanes<T>(n,
               [&](auto d, std::int64_t i) HWY_ATTR { hn::StoreU(apply_unary<F>(d, hn::LoadU(d, x + i)), d, y + i); });
}

// One row; a stride of 0 repeats a single element.
template <Binary F, typename T>
HWY_INLINE void binary_loop(const T* a, std::int64_t a_stride, const T* b, std::int64_t b_stride, T* z,
                            std::int64_t n) {
  if (a_stride != 0 && b_stride != 0) {
    for_lanes<T>(n, [&](auto d, std::int64_t i)
                        HWY_ATTR { hn::StoreU(apply_binary<F>(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, z + i); });
  } else if (a_stride != 0) {
    const T right = b[0];
    for_lanes<T>(n, [&](auto d, std::int64_t i)
                        HWY_ATTR { hn::StoreU(apply_binary<F>(hn::LoadU(d, a + i), hn::Set(d, right)), d, z + i); });
  } else {
    const T left = a[0];
    for_lanes<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
      hn::StoreU(apply_binary<F>(hn::Set(d, left), hn::LoadU(d, b + i * b_stride)), d, z + i);
    });
  }
}

template <typename T>
void unary_typed(Unary function, const T* x, T* y, std::int64_t n) {
  switch (function) {
    case Unary::neg: return unary_loop<Unary::neg>(x, y, n);
    case Unary::exp: return unary_loop<Unary::exp>(x, y, n);
    case Unary::log: return unary_loop<Unary::log>(x, y, n);
    case Unary::sqrt: return unary_loop<Unary::sqrt>(x, y, n);
    case Unary::rsqrt: return unary_loop<Unary::rsqrt>(x, y, n);
    case Unary::reciprocal: return unary_loop<Unary::reciprocal>(x, y, n);
    case Unary::square: return unary_loop<Unary::square>(x, y, n);
    case Unary::tanh: return unary_loop<Unary::tanh>(x, y, n);
    case Unary::erf: return unary_loop<Unary::erf>(x, y, n);
    case Unary::sigmoid: return unary_loop<Unary::sigmoid>(x, y, n);
    case Unary::step: return unary_loop<Unary::step>(x, y, n);
    case Unary::sin: return unary_loop<Unary::sin>(x, y, n);
    case Unary::cos: return unary_loop<Unary::cos>(x, y, n);
  }
}

template <typename T>
void binary_typed(Binary function, const T* a, std::int64_t a_stride, const T* b, std::int64_t b_stride, T* z,
                  std::int64_t n) {
  switch (function) {
    case Binary::add: return binary_loop<Binary::add>(a, a_stride, b, b_stride, z, n);
    case Binary::sub: return binary_loop<Binary::sub>(a, a_stride, b, b_stride, z, n);
    case Binary::mul: return binary_loop<Binary::mul>(a, a_stride, b, b_stride, z, n);
    case Binary::div: return binary_loop<Binary::div>(a, a_stride, b, b_stride, z, n);
  }
}

void unary_f32(Unary f, const float* x, float* y, std::int64_t n) { unary_typed(f, x, y, n); }
void unary_f64(Unary f, const double* x, double* y, std::int64_t n) { unary_typed(f, x, y, n); }
void binary_f32(Binary f, const float* a, std::int64_t as, const float* b, std::int64_t bs, float* z, std::int64_t n) {
  binary_typed(f, a, as, b, bs, z, n);
}
void binary_f64(Binary f, const double* a, std::int64_t as, const double* b, std::int64_t bs, double* z,
                std::int64_t n) {
  binary_typed(f, a, as, b, bs, z, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/graph/sum.h"
#include "norma/ops/reduce.h"
#include "ops/broadcast.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(unary_f32);
HWY_EXPORT(unary_f64);
HWY_EXPORT(binary_f32);
HWY_EXPORT(binary_f64);

std::string_view name_of(Unary function) {
  switch (function) {
    case Unary::neg: return "neg";
    case Unary::exp: return "exp";
    case Unary::log: return "log";
    case Unary::sqrt: return "sqrt";
    case Unary::rsqrt: return "rsqrt";
    case Unary::reciprocal: return "reciprocal";
    case Unary::square: return "square";
    case Unary::tanh: return "tanh";
    case Unary::erf: return "erf";
    case Unary::sigmoid: return "sigmoid";
    case Unary::step: return "step";
    case Unary::sin: return "sin";
    case Unary::cos: return "cos";
  }
  return "unary";
}

std::string_view name_of(Binary function) {
  switch (function) {
    case Binary::add: return "add";
    case Binary::sub: return "sub";
    case Binary::mul: return "mul";
    case Binary::div: return "div";
  }
  return "binary";
}

std::vector<Type> UnaryOp::infer(std::span<const Type> in) const {
  check_computes(in[0]);
  return {in[0]};
}

Wires UnaryOp::vjp(const VjpContext& context) const {
  const Wire x = context.in[0], y = context.out[0], dy = context.dout[0];
  switch (function_) {
    case Unary::neg: return {-dy};
    case Unary::exp: return {dy * y};
    case Unary::log: return {dy / x};
    case Unary::sqrt: return {dy / y * 0.5};
    case Unary::rsqrt: return {dy * y * square(y) * -0.5};
    case Unary::reciprocal: return {-(dy * square(y))};
    case Unary::square: return {dy * x * 2.0};
    case Unary::tanh: return {dy * (1.0 - square(y))};
    case Unary::erf: return {dy * exp(-square(x)) * 1.1283791670955126};  // 2 / sqrt(pi)
    case Unary::sigmoid: return {dy * y * (1.0 - y)};
    case Unary::step: return {Wire()};
    case Unary::sin: return {dy * cos(x)};
    case Unary::cos: return {-(dy * sin(x))};
  }
  return {Wire()};
}

CpuKernel cpu_kernel(const UnaryOp& op, Types in, Types) {
  const Tiling tiling(in[0].shape.elements(), 8192, 64);
  const Unary function = op.function();
  const auto kernel = [&]<typename T>(auto* run) -> CpuKernel {
    return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                          const std::int64_t begin = tiling.begin(tile);
                          run(function, call.in<T>(0) + begin, call.out<T>(0) + begin, tiling.end(tile) - begin);
                        }}}};
  };
  return in[0].dtype == DType::f32 ? kernel.operator()<float>(NORMA_SIMD(unary_f32))
                                   : kernel.operator()<double>(NORMA_SIMD(unary_f64));
}

std::vector<Type> BinaryOp::infer(std::span<const Type> in) const {
  check_computes(in[0]);
  check_same_dtype(in[0], in[1]);
  return {{broadcast_shape(in[0].shape, in[1].shape), in[0].dtype}};
}

Wires BinaryOp::vjp(const VjpContext& context) const {
  const Wire a = context.in[0], b = context.in[1], dz = context.dout[0];
  Wire da, db;
  if (context.needed[0]) {
    const bool linear = function_ == Binary::add || function_ == Binary::sub;
    da = sum_to(linear ? dz : (function_ == Binary::mul ? dz * b : dz / b), a.shape());
  }
  if (context.needed[1]) {
    switch (function_) {
      case Binary::add: db = dz; break;
      case Binary::sub: db = -dz; break;
      case Binary::mul: db = dz * a; break;
      case Binary::div: db = -(dz * context.out[0] / b); break;
    }
    db = sum_to(db, b.shape());
  }
  return {da, db};
}

CpuKernel cpu_kernel(const BinaryOp& op, Types in, Types out) {
  // Equal shapes, and a single number against anything, are one long row; the rest goes row by row.
  const Shape& shape = out[0].shape;
  const auto flat = [&](const Shape& s) { return s == shape || s.elements() == 1; };
  const bool one_row = flat(in[0].shape) && flat(in[1].shape);
  const Shape walked = one_row ? Shape{shape.elements()} : shape;
  const auto seen = [&](const Shape& s) { return one_row ? Shape{s.elements()} : s; };
  const BroadcastIndex a(seen(in[0].shape), walked), b(seen(in[1].shape), walked);
  const std::int64_t width = walked.channels();
  const Tiling tiling(one_row ? width : walked.rows(), one_row ? 16384 : std::max<std::int64_t>(1, 16384 / width),
                      one_row ? 64 : 1);
  const Binary function = op.function();
  const auto kernel = [&]<typename T>(auto* run) -> CpuKernel {
    return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                          const T *left = call.in<T>(0), *right = call.in<T>(1);
                          if (one_row) {
                            const std::int64_t begin = tiling.begin(tile);
                            run(function, left + begin * a.column_stride(), a.column_stride(),
                                right + begin * b.column_stride(), b.column_stride(), call.out<T>(0) + begin,
                                tiling.end(tile) - begin);
                            return;
                          }
                          for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                            run(function, left + a.row_offset(row), a.column_stride(), right + b.row_offset(row),
                                b.column_stride(), call.out<T>(0) + row * width, width);
                          }
                        }}}};
  };
  return in[0].dtype == DType::f32 ? kernel.operator()<float>(NORMA_SIMD(binary_f32))
                                   : kernel.operator()<double>(NORMA_SIMD(binary_f64));
}

Wire unary(Unary function, Wire x) {
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<UnaryOp>(function), in)[0];
}

Wire binary(Binary function, Wire a, Wire b) {
  const Wire in[] = {a, b};
  return a.graph().apply(std::make_shared<BinaryOp>(function), in)[0];
}

Wire operator+(Wire a, Wire b) {
  const Wire in[] = {a, b};
  return a && b && a.type() == b.type() ? sum(in) : binary(Binary::add, a, b);
}

Wire operator+(Wire a, double b) { return b == 0 ? a : binary(Binary::add, a, a.graph().fill({{1}, a.dtype()}, b)); }
Wire operator*(Wire a, double b) { return b == 1 ? a : binary(Binary::mul, a, a.graph().fill({{1}, a.dtype()}, b)); }

}  // namespace norma
#endif  // HWY_ONCE
