// The output projection and the loss in blocks of rows: logits of a block live in scratch and are gone after it.
#include <algorithm>
#include <vector>

#include "device/cpu/gemm_tiles.h"
#include "norma/core/arena.h"
#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/matmul.h"
#include "ops/check.h"
#include "ops/cross_entropy_rows.h"

namespace norma {
namespace {

constexpr std::int64_t kBlockElements = std::int64_t{1} << 18;  // logits of one block: 1 MiB in f32
constexpr std::int64_t kChunkElements = std::int64_t{1} << 21;  // logits kept at once in the backward: 8 MiB in f32

struct Sizes {
  std::int64_t rows, width, vocabulary;
  std::int64_t block;  // rows per tile
  Tiling blocks() const {
    Tiling tiling(rows, block, 1);
    tiling.block = block;
    tiling.tiles = (rows + block - 1) / block;
    return tiling;
  }
};

Sizes sizes_of(std::span<const Type> in, Transpose weight) {
  Sizes s{in[0].shape.rows(), in[0].shape.channels(), weight == Transpose::yes ? in[1].shape[0] : in[1].shape[1], 0};
  const std::int64_t by_work = Tiling(s.rows, gemm_tile_grain(s.vocabulary, s.width), 16).block;
  const std::int64_t by_memory = std::max<std::int64_t>(16, kBlockElements / s.vocabulary / 16 * 16);
  s.block = std::min(by_work, by_memory);
  return s;
}

// One compiled product per block height that occurs.
struct BlockGemm {
  std::shared_ptr<const Gemm> full, last;
  std::int64_t worker_bytes() const { return std::max(full->worker_bytes(), last->worker_bytes()); }
  const Gemm& of(bool is_last) const { return is_last ? *last : *full; }
};

template <typename Make>
BlockGemm block_gemm(std::int64_t total, std::int64_t block, DType dtype, Make make) {
  const std::int64_t rest = total % block;
  BlockGemm gemm;
  gemm.full = make_gemm(make(std::min(block, total)), dtype);
  gemm.last = rest == 0 ? gemm.full : make_gemm(make(rest), dtype);
  return gemm;
}

template <typename T>
CpuKernel forward_kernel(std::span<const Type> in, const CrossEntropyOptions& options) {
  const Sizes s = sizes_of(in, options.weight);
  const Tiling blocks = s.blocks();
  const bool transposed = options.weight == Transpose::yes;
  const BlockGemm logits_gemm = block_gemm(s.rows, s.block, in[0].dtype, [&](std::int64_t m) {
    return row_major_gemm(m, s.vocabulary, s.width, false, transposed);
  });
  CpuKernel kernel;
  kernel.scratch_bytes = s.rows * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t logits_at = align_up(logits_gemm.worker_bytes());
  kernel.worker_bytes = logits_at + s.block * s.vocabulary * static_cast<std::int64_t>(sizeof(T));
  kernel.phases.push_back(
      {blocks.tiles, [=, f = cross_entropy_rows<T>(), ignore = options.ignore](const Call& call, std::int64_t tile) {
         T* logits = call.worker<T>(logits_at);
         const std::int64_t first = blocks.begin(tile), end = blocks.end(tile);
         logits_gemm.of(end - first != s.block)
             .run(call.in<T>(0) + first * s.width, call.in<T>(1), nullptr, logits, call.worker_scratch);
         const std::int32_t* targets = call.in<std::int32_t>(2);
         for (std::int64_t row = first; row < end; ++row) {
           const T loss = f.loss(logits + (row - first) * s.vocabulary, s.vocabulary, targets[row], *call.in<T>(3),
                                 call.out<T>(1) + row);
           call.shared<T>()[row] = targets[row] == ignore ? 0 : loss;
         }
       }});
  kernel.phases.push_back({1, [rows = s.rows, ignore = options.ignore](const Call& call, std::int64_t) {
                             call.out<T>(0)[0] = mean_loss(call.shared<T>(), call.in<std::int32_t>(2), rows, ignore);
                           }});
  return kernel;
}

// For each chunk of rows: phase one makes dlogits of the chunk (in shared scratch) and dx, phase two adds the chunk's
// part of dW. Chunks follow one another, so dW is summed in a fixed order.
template <typename T>
CpuKernel backward_kernel(std::span<const Type> in, const CrossEntropyOptions& options) {
  const Sizes s = sizes_of(in, options.weight);
  const DType dtype = in[0].dtype;
  const bool transposed = options.weight == Transpose::yes;
  const std::int64_t element = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t blocks_per_chunk = std::max<std::int64_t>(1, kChunkElements / (s.block * s.vocabulary));
  const std::int64_t chunk = std::min(s.rows, blocks_per_chunk * s.block);

  const BlockGemm logits_gemm = block_gemm(s.rows, s.block, dtype, [&](std::int64_t m) {
    return row_major_gemm(m, s.vocabulary, s.width, false, transposed);
  });
  const BlockGemm dx_gemm = block_gemm(s.rows, s.block, dtype, [&](std::int64_t m) {
    return row_major_gemm(m, s.width, s.vocabulary, false, !transposed);
  });
  // dW[d, V] = x^T dlogits, or for a tied weight dW[V, d] = dlogits^T x; tiles are blocks of dW.
  const std::int64_t weight_rows = transposed ? s.vocabulary : s.width,
                     weight_columns = transposed ? s.width : s.vocabulary;
  const auto weight_gemm = [&](std::int64_t chunk_rows, bool accumulate) {
    GemmShape shape = row_major_gemm(weight_rows, weight_columns, chunk_rows, true, false);
    shape.accumulate = accumulate;
    return GemmTiles(shape, dtype, GemmTiles::Cut::rows_and_columns, chunk);
  };

  CpuKernel kernel;
  kernel.scratch_bytes = chunk * s.vocabulary * element;
  kernel.worker_bytes = std::max(logits_gemm.worker_bytes(), dx_gemm.worker_bytes());
  for (std::int64_t start = 0; start < s.rows; start += chunk) {
    const std::int64_t chunk_rows = std::min(chunk, s.rows - start);
    const std::int64_t tiles = (chunk_rows + s.block - 1) / s.block;
    kernel.phases.push_back(
        {tiles, [=, f = cross_entropy_rows<T>(), ignore = options.ignore](const Call& call, std::int64_t tile) {
           const std::int64_t first = start + tile * s.block, end = std::min(first + s.block, s.rows);
           T* logits = call.shared<T>() + tile * s.block * s.vocabulary;
           const bool is_last = end - first != s.block;
           logits_gemm.of(is_last).run(call.in<T>(0) + first * s.width, call.in<T>(1), nullptr, logits,
                                       call.worker_scratch);
           const std::int32_t* targets = call.in<std::int32_t>(2);
           const T scale = *call.in<T>(5) / counted_rows<T>(targets, s.rows, ignore);
           for (std::int64_t row = first; row < end; ++row) {
             T* z = logits + (row - first) * s.vocabulary;
             if (targets[row] == ignore) {
               std::fill_n(z, s.vocabulary, T{0});
             } else {
               f.gradient(z, s.vocabulary, targets[row], *call.in<T>(3), call.in<T>(4)[row], scale, z);
             }
           }
           dx_gemm.of(is_last).run(logits, call.in<T>(1), nullptr, call.out<T>(0) + first * s.width,
                                   call.worker_scratch);
         }});
    const GemmTiles gemm = weight_gemm(chunk_rows, start > 0);
    kernel.worker_bytes = std::max(kernel.worker_bytes, gemm.worker_bytes());
    const auto add_weights = [=](const Call& call, std::int64_t begin, std::int64_t end) {
      const T* x = call.in<T>(0) + start * s.width;
      const T* dlogits = call.shared<T>();
      gemm.run(begin, end, transposed ? dlogits : x, transposed ? x : dlogits, call.out<T>(1), call.worker_scratch);
    };
    kernel.phases.push_back({.tiles = gemm.count(),
                             .run = [=](const Call& call, std::int64_t tile) { add_weights(call, tile, tile + 1); },
                             .run_several = add_weights});
  }
  return kernel;
}

}  // namespace

std::string LinearCrossEntropy::attributes() const { return CrossEntropy(options_).attributes(); }
std::string LinearCrossEntropyBackward::attributes() const { return CrossEntropy(options_).attributes(); }

void LinearCrossEntropy::choose(Widths& widths) const {
  widths.all(false);
  widths.in[0] = widths.in[1] = true;
}

void LinearCrossEntropyBackward::choose(Widths& widths) const {
  widths.all(false);
  widths.in[0] = widths.in[1] = widths.out[0] = true;
}

std::string LinearCrossEntropyGradient::attributes() const { return CrossEntropy(options_).attributes(); }

void LinearCrossEntropyGradient::choose(Widths& widths) const {
  widths.all(false);
  widths.in[0] = widths.in[1] = widths.out[2] = true;
}

std::vector<Type> LinearCrossEntropyGradient::infer(std::span<const Type> in) const {
  check_count(in.size(), 5);
  std::vector<Type> out = LinearCrossEntropy(options_).infer(in.first(4));
  check_type("dloss", in[4], out[0]);
  out.push_back(in[0]);
  out.push_back(in[1]);
  return out;
}

Wires LinearCrossEntropyGradient::reference(std::span<const Wire> in) const {
  Graph& graph = in[0].graph();
  Wires out = graph.apply(std::make_shared<LinearCrossEntropy>(options_), in.first(4));
  const Wire backward[] = {in[0], in[1], in[2], in[3], out[1], in[4]};
  for (const Wire& gradient : graph.apply(std::make_shared<LinearCrossEntropyBackward>(options_), backward)) {
    out.push_back(gradient);
  }
  return out;
}

Cost LinearCrossEntropyGradient::cost(std::span<const Type> in, std::span<const Type> out) const {
  const Cost one = LinearCrossEntropy(options_).cost(in.first(4), out.first(2));
  return {.flops = 3 * one.flops, .bytes = traffic(in, out), .products = 3 * one.flops};
}

std::vector<Type> LinearCrossEntropy::infer(std::span<const Type> in) const {
  check_count(in.size(), 4);
  const MatMul projection(Product::rows, Transpose::no, options_.weight);
  const std::vector<Type> logits = projection.infer(in.first(2));
  const Type forward[] = {logits[0], in[2], in[3]};
  return CrossEntropy(options_).infer(forward);
}

Wires LinearCrossEntropy::vjp(const VjpContext& context) const {
  if (context.dout[1]) fail("linear_cross_entropy has no gradient through its log-sum-exp");
  const Wire in[] = {context.in[0], context.in[1], context.in[2], context.in[3], context.out[1], context.dout[0]};
  const Wires gradients = context.graph().apply(std::make_shared<LinearCrossEntropyBackward>(options_), in);
  return {gradients[0], gradients[1], Wire(), Wire()};
}

Wires LinearCrossEntropy::reference(std::span<const Wire> in) const {
  const Wire logits = matmul_rows(in[0], in[1], options_.weight);
  const Wire forward[] = {logits, in[2], in[3]};
  return logits.graph().apply(std::make_shared<CrossEntropy>(options_), forward);
}

Cost LinearCrossEntropy::cost(std::span<const Type> in, std::span<const Type> out) const {
  const Sizes s = sizes_of(in, options_.weight);
  const double flops = 2.0 * static_cast<double>(s.rows) * static_cast<double>(s.width * s.vocabulary);
  return {.flops = flops, .bytes = traffic(in, out), .products = flops};
}

CpuKernel cpu_kernel(const LinearCrossEntropy& op, Types in, Types) {
  return in[0].dtype == DType::f32 ? forward_kernel<float>(in, op.options()) : forward_kernel<double>(in, op.options());
}

std::vector<Type> LinearCrossEntropyBackward::infer(std::span<const Type> in) const {
  check_count(in.size(), 6);
  const std::vector<Type> forward = LinearCrossEntropy(options_).infer(in.first(4));
  check_type("lse", in[4], forward[1]);
  check_type("dloss", in[5], forward[0]);
  return {in[0], in[1]};
}

Cost LinearCrossEntropyBackward::cost(std::span<const Type> in, std::span<const Type> out) const {
  const Sizes s = sizes_of(in, options_.weight);
  return {.flops = 6.0 * static_cast<double>(s.rows) * static_cast<double>(s.width * s.vocabulary),
          .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const LinearCrossEntropyBackward& op, Types in, Types) {
  return in[0].dtype == DType::f32 ? backward_kernel<float>(in, op.options())
                                   : backward_kernel<double>(in, op.options());
}

Wire linear_cross_entropy(Wire x, Wire weight, Wire targets, Wire smoothing, CrossEntropyOptions options) {
  Graph& graph = x.graph();
  const Wire in[] = {x, weight, targets, smoothing ? smoothing : graph.fill({{1}, x.dtype()}, 0)};
  return graph.apply(std::make_shared<LinearCrossEntropy>(options), in)[0];
}

}  // namespace norma
