// y = x W, dW = x^T dy, over the numbers of x that are not zero.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sparse_product.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "ops/sparse_lists.h"

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
HWY_INLINE void each_of(const T* row, std::int64_t count, F use) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto none = hn::Eq(hn::LoadU(d, row + i), hn::Zero(d));
    if (hn::AllTrue(d, none)) continue;
    std::uint8_t bytes[8] = {};
    std::uint64_t bits = 0;
    hn::StoreMaskBits(d, hn::Not(none), bytes);
    std::memcpy(&bits, bytes, sizeof(bits));
    for (; bits != 0; bits &= bits - 1) use(i + std::countr_zero(bits));
  }
  for (; i < count; ++i) {
    if (!(row[i] == 0)) use(i);
  }
}

template <typename T>
void multiply_row(const T* row, std::int64_t in, const T* weight, std::int64_t out, T* y, ListedRow<T> list) {
  for (std::int64_t i = 0; i < out; ++i) y[i] = 0;
  std::int64_t found = 0;
  each_of(row, in, [&](std::int64_t k) HWY_ATTR {
    add_scaled(weight + k * out, row[k], y, out);
    if (found < list.room) list.add(found, k, row[k]);
    ++found;
  });
  if (list.words != nullptr) *list.words = static_cast<std::int32_t>(found <= list.room ? found : -1);
}

// Columns of the gradient from `begin` to `end`, of all rows of x in order.
template <typename T>
void gather_columns(const T* x, ListedRow<const T> list, const T* dy, std::int64_t rows, std::int64_t in,
                    std::int64_t out, std::int64_t begin, std::int64_t end, T* gradient) {
  for (std::int64_t k = 0; k < in; ++k) std::fill_n(gradient + k * out + begin, end - begin, T{0});
  for (std::int64_t row = 0; row < rows; ++row, list.words += list.size()) {
    const T* const from = dy + row * out + begin;
    const std::int32_t found = *list.words;
    for (std::int64_t e = 0; e < found; ++e)
      add_scaled(from, list.number(e), gradient + list.place(e) * out + begin, end - begin);
    if (found >= 0) continue;
    each_of(x + row * in, in, [&](std::int64_t k) HWY_ATTR {
      add_scaled(from, x[row * in + k], gradient + k * out + begin, end - begin);
    });
  }
}

void multiply_row_f32(const float* row, std::int64_t in, const float* weight, std::int64_t out, float* y,
                      ListedRow<float> list) {
  multiply_row(row, in, weight, out, y, list);
}
void multiply_row_f64(const double* row, std::int64_t in, const double* weight, std::int64_t out, double* y,
                      ListedRow<double> list) {
  multiply_row(row, in, weight, out, y, list);
}
void gather_columns_f32(const float* x, ListedRow<const float> list, const float* dy, std::int64_t rows,
                        std::int64_t in, std::int64_t out, std::int64_t begin, std::int64_t end, float* gradient) {
  gather_columns(x, list, dy, rows, in, out, begin, end, gradient);
}
void gather_columns_f64(const double* x, ListedRow<const double> list, const double* dy, std::int64_t rows,
                        std::int64_t in, std::int64_t out, std::int64_t begin, std::int64_t end, double* gradient) {
  gather_columns(x, list, dy, rows, in, out, begin, end, gradient);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/matmul.h"
#include "norma/ops/sparse_product.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(multiply_row_f32);
HWY_EXPORT(multiply_row_f64);
HWY_EXPORT(gather_columns_f32);
HWY_EXPORT(gather_columns_f64);

namespace {

struct SparseSizes {
  std::int64_t rows, in, out;
};

void check_rank(const Type& type, const char* what) {
  if (type.shape.rank() != 2) fail("{} must be a matrix but is {}", what, type.shape.str());
}

// Rows with more than an eighth of their numbers are not worth a list.
std::int64_t listed_room(std::int64_t in) { return std::max<std::int64_t>(8, in / 8); }

Type list_type(const Type& x) {
  const std::int64_t room = listed_room(x.shape[1]);
  const std::int64_t words =
      x.dtype == DType::f64 ? ListedRow<double>{nullptr, room}.size() : ListedRow<float>{nullptr, room}.size();
  return {{x.shape[0], words}, DType::i32};
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
  return {{{in[0].shape[0], in[1].shape[1]}, in[0].dtype}, list_type(in[0])};
}

Wires SparseProduct::vjp(const VjpContext& context) const {
  const Wire x = context.in[0], weight = context.in[1], dy = context.dout[0];
  Wires result(2);
  if (context.needed[0]) result[0] = matmul(dy, weight, Transpose::no, Transpose::yes);
  if (context.needed[1]) {
    const Wire in[] = {x, context.out[1], dy};
    result[1] = context.graph().apply(std::make_shared<SparseGradient>(), in)[0];
  }
  return result;
}

Wires SparseProduct::reference(std::span<const Wire> in) const {
  return {matmul_rows(in[0], in[1]), in[0].graph().fill(list_type(in[0].type()), -1)};
}

// As of a product: how much of it is zero is known to nobody before it runs.
Cost SparseProduct::cost(std::span<const Type> in, std::span<const Type> out) const {
  const double flops = sparse_flops(in[0].shape[0], in[0].shape[1], in[1].shape[1]);
  return {.flops = flops, .bytes = traffic(in, out.first(1)), .products = flops};
}

std::vector<Type> SparseGradient::infer(std::span<const Type> in) const {
  check_count(in.size(), 3);
  check_computes(in[0]);
  check_same_dtype(in[0], in[2]);
  check_rank(in[0], "x");
  check_rank(in[2], "dy");
  check_type("the list", in[1], list_type(in[0]));
  if (in[0].shape[0] != in[2].shape[0])
    fail("x {} and dy {} do not have as many rows", in[0].shape.str(), in[2].shape.str());
  return {{{in[0].shape[1], in[2].shape[1]}, in[0].dtype}};
}

Wires SparseGradient::vjp(const VjpContext& context) const {
  const Wire x = context.in[0], dy = context.in[2], ddw = context.dout[0];
  Wires result(3);
  if (context.needed[0]) result[0] = matmul(dy, ddw, Transpose::no, Transpose::yes);
  if (context.needed[2]) result[2] = sparse_product(x, ddw);
  return result;
}

Wires SparseGradient::reference(std::span<const Wire> in) const { return {matmul(in[0], in[2], Transpose::yes)}; }

Cost SparseGradient::cost(std::span<const Type> in, std::span<const Type> out) const {
  const double flops = sparse_flops(in[0].shape[0], in[0].shape[1], in[2].shape[1]);
  return {.flops = flops, .bytes = traffic(in, out), .products = flops};
}

namespace {

template <typename T, typename Multiply>
CpuKernel sparse_product_kernel(const SparseSizes& s, Multiply* multiply) {
  const Tiling rows(s.rows, 32);
  const std::int64_t room = listed_room(s.in);
  const auto run = [=](const Call& call, std::int64_t tile) {
    std::int32_t* const lists = call.out<std::int32_t>(1);
    ListedRow<T> list{lists, lists == nullptr ? 0 : room};
    for (std::int64_t row = rows.begin(tile); row < rows.end(tile); ++row) {
      if (lists != nullptr) list.words = lists + row * list.size();
      multiply(call.in<T>(0) + row * s.in, s.in, call.in<T>(1), s.out, call.out<T>(0) + row * s.out, list);
    }
  };
  return {.phases = {{.tiles = rows.tiles, .run = run}}};
}

// A tile is some columns of the gradient, so that each number is added up in one order and lists are read in theirs.
template <typename T, typename Gather>
CpuKernel sparse_gradient_kernel(const SparseSizes& s, Gather* gather) {
  const Tiling columns(s.out, 32, 16);
  const std::int64_t room = listed_room(s.in);
  const auto run = [=](const Call& call, std::int64_t tile) {
    gather(call.in<T>(0), ListedRow<const T>{call.in<std::int32_t>(1), room}, call.in<T>(2), s.rows, s.in, s.out,
           columns.begin(tile), columns.end(tile), call.out<T>(0));
  };
  return {.phases = {{.tiles = columns.tiles, .run = run}}};
}

}  // namespace

CpuKernel cpu_kernel(const SparseProduct&, Types in, Types out) {
  const SparseSizes s{in[0].shape[0], in[0].shape[1], out[0].shape[1]};
  return in[0].dtype == DType::f32 ? sparse_product_kernel<float>(s, NORMA_SIMD(multiply_row_f32))
                                   : sparse_product_kernel<double>(s, NORMA_SIMD(multiply_row_f64));
}

CpuKernel cpu_kernel(const SparseGradient&, Types in, Types out) {
  const SparseSizes s{in[0].shape[0], in[0].shape[1], out[0].shape[1]};
  return in[0].dtype == DType::f32 ? sparse_gradient_kernel<float>(s, NORMA_SIMD(gather_columns_f32))
                                   : sparse_gradient_kernel<double>(s, NORMA_SIMD(gather_columns_f64));
}

Wire sparse_product(Wire x, Wire weight) {
  const Wire in[] = {x, weight};
  return x.graph().apply(std::make_shared<SparseProduct>(), in)[0];
}

}  // namespace norma
#endif  // HWY_ONCE
