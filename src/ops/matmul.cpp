#include "norma/ops/matmul.h"

#include <algorithm>
#include <cstring>

#include "device/cpu/gemm_packing.h"
#include "device/cpu/gemm_tiles.h"
#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "ops/check.h"

namespace norma {
namespace {

bool yes(Transpose transpose) { return transpose == Transpose::yes; }
Transpose flip(Transpose transpose) { return yes(transpose) ? Transpose::no : Transpose::yes; }

Wire apply(Product product, Wire a, Wire b, Transpose ta, Transpose tb) {
  const Wire in[] = {a, b};
  return a.graph().apply(std::make_shared<MatMul>(product, ta, tb), in)[0];
}

// The rows that one weight makes are many tiles. Where the weight is transposed, the library would turn it around for
// each of them: so it is packed once, in a phase of its own, which need not wait for the rows. The bits are the same.
// Returns the phase's share of the work, or 0 where packing does not pay or the library has no layout for it.
double pack_weight(CpuKernel& kernel, const MatMul& op, GemmShape& shape, DType dtype) {
  constexpr std::int64_t kLeastTiles = 4;
  if (op.product() != Product::rows || !yes(op.transpose_b()) || dtype != DType::f32) return 0;
  GemmShape packed = shape;
  packed.packed = true;
  const GemmTiles tiles(packed, dtype, GemmTiles::Cut::rows);
  if (tiles.count() < kLeastTiles || tiles.panels().width == 0) return 0;
  shape = packed;
  return add_packing(kernel, packed, tiles.panels());
}

}  // namespace

// Factors are narrow. What it adds to keeps its width; gradients of weights are wide.
void MatMul::choose(Widths& widths) const {
  const bool weights = product_ == Product::reduce_rows;
  const bool narrow = !weights && (!accumulate_ || widths.in[2]);
  widths.in.assign(widths.in.size(), true);
  if (accumulate_) widths.in[2] = narrow;
  widths.out = {narrow};
}

std::string MatMul::attributes() const {
  constexpr std::string_view kNames[] = {"batched", "rows", "reduce_rows"};
  return fmt::format("{}{}{}{}", kNames[static_cast<int>(product_)], yes(a_) ? " a^T" : "", yes(b_) ? " b^T" : "",
                     accumulate_ ? " accumulate" : "");
}

MatMul::Sizes MatMul::sizes(std::span<const Type> in) const {
  const Shape &a = in[0].shape, &b = in[1].shape;
  switch (product_) {
    case Product::rows: {
      if (b.rank() != 2) fail("the weight must have two axes but is {}", b.str());
      const std::int64_t k = yes(b_) ? b[1] : b[0], n = yes(b_) ? b[0] : b[1];
      if (a.channels() != k) fail("{} has {} channels but the weight {} takes {}", a.str(), a.channels(), b.str(), k);
      return {1, a.rows(), n, k};
    }
    case Product::reduce_rows:
      if (a.rows() != b.rows()) fail("{} and {} differ in rows: {} and {}", a.str(), b.str(), a.rows(), b.rows());
      return {1, a.channels(), b.channels(), a.rows()};
    case Product::batched: break;
  }
  if (a.rank() < 2 || b.rank() != a.rank())
    fail("needs two tensors of one rank, at least 2, but got {} and {}", a.str(), b.str());
  for (int axis = 0; axis + 2 < a.rank(); ++axis) {
    if (a[axis] != b[axis]) fail("batch axes of {} and {} differ", a.str(), b.str());
  }
  const std::int64_t m = yes(a_) ? a[-1] : a[-2], k = yes(a_) ? a[-2] : a[-1];
  const std::int64_t kb = yes(b_) ? b[-1] : b[-2], n = yes(b_) ? b[-2] : b[-1];
  if (k != kb) fail("inner sizes of {} and {} differ: {} and {}", a.str(), b.str(), k, kb);
  return {a.elements() / (a[-1] * a[-2]), m, n, k};
}

std::vector<Type> MatMul::infer(std::span<const Type> in) const {
  check_count(in.size(), accumulate_ ? 3 : 2);
  check_computes(in[0]);
  check_same_dtype(in[0], in[1]);
  const Sizes s = sizes(in);
  Type out{in[0].shape, in[0].dtype};
  switch (product_) {
    case Product::rows: out.shape = in[0].shape.with(-1, s.n); break;
    case Product::reduce_rows: out.shape = {s.m, s.n}; break;
    case Product::batched: out.shape = in[0].shape.with(-2, s.m).with(-1, s.n); break;
  }
  if (accumulate_) check_type("the accumulated tensor", in[2], out);
  return {out};
}

Wires MatMul::vjp(const VjpContext& context) const {
  const Wire a = context.in[0], b = context.in[1], dc = context.dout[0];
  Wire da, db;
  switch (product_) {
    case Product::rows:
      if (context.needed[0]) da = matmul_rows(dc, b, flip(b_));
      if (context.needed[1]) db = yes(b_) ? matmul_reduce_rows(dc, a) : matmul_reduce_rows(a, dc);
      break;
    case Product::reduce_rows:
      if (context.needed[0]) da = matmul_rows(b, dc, Transpose::yes);
      if (context.needed[1]) db = matmul_rows(a, dc);
      break;
    case Product::batched:
      if (context.needed[0]) da = yes(a_) ? matmul(b, dc, b_, Transpose::yes) : matmul(dc, b, Transpose::no, flip(b_));
      if (context.needed[1]) db = yes(b_) ? matmul(dc, a, Transpose::yes, a_) : matmul(a, dc, flip(a_), Transpose::no);
      break;
  }
  Wires result = {da, db};
  if (accumulate_) result.push_back(dc);
  return result;
}

Cost MatMul::cost(std::span<const Type> in, std::span<const Type> out) const {
  const Sizes s = sizes(in);
  const double flops = 2.0 * static_cast<double>(s.batch * s.m) * static_cast<double>(s.n * s.k);
  return {.flops = flops, .bytes = traffic(in, out), .products = flops};
}

CpuKernel cpu_kernel(const MatMul& op, Types in, Types) {
  const MatMul::Sizes s = op.sizes(in);
  const std::int64_t element = static_cast<std::int64_t>(size_of(in[0].dtype));
  const bool a_transposed =
      op.product() == Product::reduce_rows || (op.product() == Product::batched && yes(op.transpose_a()));
  const bool b_transposed = op.product() != Product::reduce_rows && yes(op.transpose_b());
  GemmShape shape = row_major_gemm(s.m, s.n, s.k, a_transposed, b_transposed);
  shape.accumulate = op.accumulates();
  CpuKernel kernel;
  const double share = pack_weight(kernel, op, shape, in[0].dtype);
  const auto cut = op.product() == Product::reduce_rows ? GemmTiles::Cut::rows_and_columns : GemmTiles::Cut::rows;
  // A whole product of a batch is one tile when the batch alone gives enough of them.
  const GemmTiles tiles(shape, in[0].dtype, cut);
  kernel.worker_bytes = tiles.worker_bytes();
  const auto product = [=, accumulate = op.accumulates()](const Call& call, std::int64_t item) {
    const std::int64_t batch = item / tiles.count(), tile = item % tiles.count();
    const std::byte* a = call.in<std::byte>(0) + batch * s.m * s.k * element;
    const std::byte* b = shape.packed ? call.shared<std::byte>() : call.in<std::byte>(1) + batch * s.k * s.n * element;
    std::byte* c = call.out<std::byte>(0) + batch * s.m * s.n * element;
    if (accumulate && call.in<std::byte>(2) != call.out<std::byte>(0)) {
      const std::byte* old = call.in<std::byte>(2) + batch * s.m * s.n * element;
      const GemmTiles::Block block = tiles.block(tile);
      for (std::int64_t row = block.row; row < block.row + block.rows; ++row) {
        const std::int64_t at = (row * s.n + block.column) * element;
        std::memcpy(c + at, old + at, static_cast<std::size_t>(block.columns * element));
      }
    }
    tiles.run(tile, a, b, c, call.worker_scratch);
  };
  kernel.phases.push_back({.tiles = s.batch * tiles.count(), .run = product, .share = 1 - share});
  if (op.product() != Product::reduce_rows || op.accumulates()) return kernel;
  kernel.phases.back().run_several = [=](const Call& call, std::int64_t begin, std::int64_t end) {
    tiles.run(begin, end, call.in<std::byte>(0), call.in<std::byte>(1), call.out<std::byte>(0), call.worker_scratch);
  };
  return kernel;
}

Wire matmul(Wire a, Wire b, Transpose transpose_a, Transpose transpose_b) {
  return apply(Product::batched, a, b, transpose_a, transpose_b);
}

Wire matmul_rows(Wire x, Wire weight, Transpose transpose_weight) {
  return apply(Product::rows, x, weight, Transpose::no, transpose_weight);
}

Wire matmul_reduce_rows(Wire a, Wire b) { return apply(Product::reduce_rows, a, b, Transpose::yes, Transpose::no); }

}  // namespace norma
