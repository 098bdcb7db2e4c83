#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sparse_product.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "norma/ops/sparse_product.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

// to += factor from, of `count` numbers.
template <typename T>
HWY_INLINE void add_scaled(const T* from, T factor, T* to, std::int64_t count) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, factor);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::MulAdd(by, hn::LoadU(d, from + i), hn::LoadU(d, to + i)), d, to + i);
  for (; i < count; ++i) to[i] += factor * from[i];
}

// Calls use(i) for every number of the row that is not zero; a block of zeros is one test. NaN is not zero.
template <typename T, typename F>
HWY_INLINE void each_of(const T* row, std::int64_t begin, std::int64_t end, F use) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = begin;
  for (; i + lanes <= end; i += lanes) {
    if (hn::AllTrue(d, hn::Eq(hn::LoadU(d, row + i), hn::Zero(d)))) continue;
    for (std::int64_t k = i; k < i + lanes; ++k) {
      if (!(row[k] == 0)) use(k);
    }
  }
  for (; i < end; ++i) {
    if (!(row[i] == 0)) use(i);
  }
}

template <typename T>
void multiply_row(const T* row, std::int64_t in, const T* weight, std::int64_t out, T* y) {
  for (std::int64_t i = 0; i < out; ++i) y[i] = 0;
  each_of(row, 0, in, [&](std::int64_t k) HWY_ATTR { add_scaled(weight + k * out, row[k], y, out); });
}

// Rows of the gradient from `begin` to `end`, of all rows of x in order.
template <typename T>
void gather_rows(const T* x, const T* dy, std::int64_t rows, std::int64_t in, std::int64_t out, std::int64_t begin,
                 std::int64_t end, T* gradient) {
  for (std::int64_t i = begin * out; i < end * out; ++i) gradient[i] = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* const from = x + row * in;
    each_of(from, begin, end,
            [&](std::int64_t k) HWY_ATTR { add_scaled(dy + row * out, from[k], gradient + k * out, out); });
  }
}

void multiply_row_f32(const float* row, std::int64_t in, const float* weight, std::int64_t out, float* y) {
  multiply_row(row, in, weight, out, y);
}
void multiply_row_f64(const double* row, std::int64_t in, const double* weight, std::int64_t out, double* y) {
  multiply_row(row, in, weight, out, y);
}
void gather_rows_f32(const float* x, const float* dy, std::int64_t rows, std::int64_t in, std::int64_t out,
                     std::int64_t begin, std::int64_t end, float* gradient) {
  gather_rows(x, dy, rows, in, out, begin, end, gradient);
}
void gather_rows_f64(const double* x, const double* dy, std::int64_t rows, std::int64_t in, std::int64_t out,
                     std::int64_t begin, std::int64_t end, double* gradient) {
  gather_rows(x, dy, rows, in, out, begin, end, gradient);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/matmul.h"
#include "norma/ops/views.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(multiply_row_f32);
HWY_EXPORT(multiply_row_f64);
HWY_EXPORT(gather_rows_f32);
HWY_EXPORT(gather_rows_f64);

namespace {

struct SparseSizes {
  std::int64_t rows, in, out;
};

void check_rank(const Type& type, const char* what) {
  if (type.shape.rank() != 2) fail("{} must be a matrix but is {}", what, type.shape.str());
}

double sparse_flops(std::int64_t rows, std::int64_t in, std::int64_t out) {
  return 2 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
}

}  // namespace

std::vector<Type> SparseProduct::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_computes(in[0]);
  check_same_dtype(in[0], in[1]);
  check_rank(in[0], "x");
  check_rank(in[1], "the weight");
  if (in[0].shape[1] != in[1].shape[0])
    fail("x {} and the weight {} do not fit together", in[0].shape.str(), in[1].shape.str());
  return {{{in[0].shape[0], in[1].shape[1]}, in[0].dtype}};
}

Wires SparseProduct::vjp(const VjpContext& context) const {
  const Wire x = context.in[0], weight = context.in[1], dy = context.dout[0];
  Wires result(2);
  if (context.needed[0]) result[0] = matmul(dy, weight, Transpose::no, Transpose::yes);
  if (context.needed[1]) {
    const Wire in[] = {x, dy};
    result[1] = context.graph().apply(std::make_shared<SparseGradient>(), in)[0];
  }
  return result;
}

Wires SparseProduct::reference(std::span<const Wire> in) const { return {matmul_rows(in[0], in[1])}; }

// As of a product: how much of it is zero is known to nobody before it runs.
Cost SparseProduct::cost(std::span<const Type> in, std::span<const Type> out) const {
  const double flops = sparse_flops(in[0].shape[0], in[0].shape[1], in[1].shape[1]);
  return {.flops = flops, .bytes = traffic(in, out), .products = flops};
}

std::vector<Type> SparseGradient::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_computes(in[0]);
  check_same_dtype(in[0], in[1]);
  check_rank(in[0], "x");
  check_rank(in[1], "dy");
  if (in[0].shape[0] != in[1].shape[0])
    fail("x {} and dy {} do not have as many rows", in[0].shape.str(), in[1].shape.str());
  return {{{in[0].shape[1], in[1].shape[1]}, in[0].dtype}};
}

Wires SparseGradient::vjp(const VjpContext& context) const {
  const Wire x = context.in[0], dy = context.in[1], ddw = context.dout[0];
  Wires result(2);
  if (context.needed[0]) result[0] = matmul(dy, ddw, Transpose::no, Transpose::yes);
  if (context.needed[1]) result[1] = sparse_product(x, ddw);
  return result;
}

Wires SparseGradient::reference(std::span<const Wire> in) const { return {matmul(in[0], in[1], Transpose::yes)}; }

Cost SparseGradient::cost(std::span<const Type> in, std::span<const Type> out) const {
  const double flops = sparse_flops(in[0].shape[0], in[0].shape[1], in[1].shape[1]);
  return {.flops = flops, .bytes = traffic(in, out), .products = flops};
}

CpuKernel cpu_kernel(const SparseProduct&, Types in, Types out) {
  const SparseSizes s{in[0].shape[0], in[0].shape[1], out[0].shape[1]};
  const Tiling rows(s.rows, 32);
  const bool narrow = in[0].dtype == DType::f32;
  return {.phases = {{.tiles = rows.tiles, .run = [=](const Call& call, std::int64_t tile) {
                        for (std::int64_t row = rows.begin(tile); row < rows.end(tile); ++row) {
                          if (narrow) {
                            HWY_DYNAMIC_DISPATCH(multiply_row_f32)
                            (call.in<float>(0) + row * s.in, s.in, call.in<float>(1), s.out,
                             call.out<float>(0) + row * s.out);
                          } else {
                            HWY_DYNAMIC_DISPATCH(multiply_row_f64)
                            (call.in<double>(0) + row * s.in, s.in, call.in<double>(1), s.out,
                             call.out<double>(0) + row * s.out);
                          }
                        }
                      }}}};
}

// A tile is some rows of the gradient, so that each is added up in one order.
CpuKernel cpu_kernel(const SparseGradient&, Types in, Types out) {
  const SparseSizes s{in[0].shape[0], in[0].shape[1], out[0].shape[1]};
  const Tiling parts(s.in, 128);
  const bool narrow = in[0].dtype == DType::f32;
  return {.phases = {{.tiles = parts.tiles, .run = [=](const Call& call, std::int64_t tile) {
                        if (narrow) {
                          HWY_DYNAMIC_DISPATCH(gather_rows_f32)
                          (call.in<float>(0), call.in<float>(1), s.rows, s.in, s.out, parts.begin(tile),
                           parts.end(tile), call.out<float>(0));
                        } else {
                          HWY_DYNAMIC_DISPATCH(gather_rows_f64)
                          (call.in<double>(0), call.in<double>(1), s.rows, s.in, s.out, parts.begin(tile),
                           parts.end(tile), call.out<double>(0));
                        }
                      }}}};
}

Wire sparse_product(Wire x, Wire weight) {
  const Wire in[] = {x, weight};
  return x.graph().apply(std::make_shared<SparseProduct>(), in)[0];
}

}  // namespace norma
#endif  // HWY_ONCE
