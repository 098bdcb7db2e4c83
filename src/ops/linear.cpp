#include "norma/ops/linear.h"

#include <algorithm>

#include "device/cpu/gemm_packing.h"
#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"
#include "norma/ops/reduce.h"
#include "ops/check.h"

namespace norma {
namespace {

// One product for every block of rows; the last block may be shorter.
struct RowBlockGemms {
  std::shared_ptr<const Gemm> full, last;

  RowBlockGemms(GemmShape shape, const Tiling& blocks, DType dtype) {
    shape.m = std::min(blocks.block, blocks.total);
    full = make_gemm(shape, dtype);
    shape.m = blocks.end(blocks.tiles - 1) - blocks.begin(blocks.tiles - 1);
    last = make_gemm(shape, dtype);
  }
  bool packs() const { return full->panels().width > 0 && full->panels() == last->panels(); }
};

// Rows of so many floats, a power of two, lie in the same places of the cache: the library packs such weights for every
// block of rows, and it is cheaper to do so once. The bits are the same.
bool worth_packing(std::int64_t n, const Tiling& blocks, DType dtype) {
  return dtype == DType::f32 && blocks.tiles >= 4 && n >= 512 && (n & (n - 1)) == 0;
}

}  // namespace

std::string Linear::attributes() const {
  if (activation_ == Activation::none) return bias_ ? "bias" : "";
  return fmt::format("{}{}", bias_ ? "bias " : "", name_of(activation_));
}

std::vector<Type> Linear::infer(std::span<const Type> in) const {
  check_count(in.size(), bias_ ? 3 : 2);
  check_computes(in[0]);
  check_same_dtype(in[0], in[1]);
  const Shape &x = in[0].shape, &w = in[1].shape;
  if (w.rank() != 2) fail("the weight must be [in, out] but is {}", w.str());
  if (x.channels() != w[0]) fail("the input has {} channels but the weight {} takes {}", x.channels(), w.str(), w[0]);
  if (bias_) check_type("the bias", in[2], {{w[1]}, in[0].dtype});
  const Type out{x.with(-1, w[1]), in[0].dtype};
  return activation_ == Activation::none ? std::vector<Type>{out} : std::vector<Type>{out, out};
}

Wires Linear::vjp(const VjpContext& context) const {
  const Wire x = context.in[0], weight = context.in[1];
  Wire dz = context.dout[0];
  if (activation_ != Activation::none) {
    if (dz) dz = activate_backward(context.out[1], context.out[0], dz, activation_);
    if (context.dout[1]) dz = dz ? dz + context.dout[1] : context.dout[1];
  }
  Wires result(context.in.size());
  if (context.needed[0]) result[0] = matmul_rows(dz, weight, Transpose::yes);
  if (context.needed[1]) result[1] = matmul_reduce_rows(x, dz);
  if (bias_ && context.needed[2]) result[2] = sum_to(dz, context.in[2].shape());
  return result;
}

Wires Linear::reference(std::span<const Wire> in) const {
  Wire z = matmul_rows(in[0], in[1]);
  if (bias_) z = z + in[2];
  if (activation_ == Activation::none) return {z};
  const Wire only[] = {z};
  return {ActivationOp(activation_).reference(only)[0], z};
}

Cost Linear::cost(std::span<const Type> in, std::span<const Type> out) const {
  const Shape& w = in[1].shape;
  const double flops = 2.0 * static_cast<double>(in[0].shape.rows()) * static_cast<double>(w.elements());
  return {.flops = flops, .bytes = traffic(in, out.first(1)), .products = flops};
}

CpuKernel cpu_kernel(const Linear& op, Types in, Types) {
  const std::int64_t rows = in[0].shape.rows(), k = in[1].shape[0], n = in[1].shape[1];
  const std::int64_t element = static_cast<std::int64_t>(size_of(in[0].dtype));
  const Tiling blocks(rows, gemm_tile_grain(n, k), 16);
  GemmShape shape = row_major_gemm(rows, n, k, false, false);
  shape.bias = op.has_bias();
  shape.packed = worth_packing(n, blocks, in[0].dtype);
  RowBlockGemms gemms(shape, blocks, in[0].dtype);
  CpuKernel kernel;
  double share = 1;  // of the products
  if (shape.packed && gemms.packs()) {
    share -= add_packing(kernel, shape, gemms.full->panels());
  } else if (shape.packed) {
    shape.packed = false;
    gemms = RowBlockGemms(shape, blocks, in[0].dtype);
  }
  kernel.worker_bytes = std::max(gemms.full->worker_bytes(), gemms.last->worker_bytes());
  const auto product = [=](const Call& call, std::int64_t tile, std::byte* z) {
    const std::byte* weight = shape.packed ? call.shared<std::byte>() : call.in<std::byte>(1);
    (tile + 1 == blocks.tiles ? gemms.last : gemms.full)
        ->run(call.in<std::byte>(0) + blocks.begin(tile) * k * element, weight,
              shape.bias ? call.in<std::byte>(2) : nullptr, z, call.worker_scratch);
  };
  if (op.activation() == Activation::none) {
    const auto run = [=](const Call& call, std::int64_t tile) {
      product(call, tile, call.out<std::byte>(0) + blocks.begin(tile) * n * element);
    };
    kernel.phases.push_back({.tiles = blocks.tiles, .run = run, .share = share});
    return kernel;
  }
  const auto add_phase = [&]<typename T>(auto* activation_loop) {
    const auto run = [=, f = op.activation()](const Call& call, std::int64_t tile) {
      const std::int64_t at = blocks.begin(tile) * n;
      T* y = call.out<T>(0) + at;
      T* z = call.out<T>(1) == nullptr ? y : call.out<T>(1) + at;
      product(call, tile, reinterpret_cast<std::byte*>(z));
      activation_loop(f, z, y, (blocks.end(tile) - blocks.begin(tile)) * n);
    };
    kernel.phases.push_back({.tiles = blocks.tiles, .run = run, .share = share});
  };
  if (in[0].dtype == DType::f32) {
    add_phase.operator()<float>(activation_loop_f32());
  } else {
    add_phase.operator()<double>(activation_loop_f64());
  }
  return kernel;
}

Wire linear(Wire x, Wire weight, Wire bias, Activation activation) {
  Wires in = {x, weight};
  if (bias) in.push_back(bias);
  return x.graph().apply(std::make_shared<Linear>(static_cast<bool>(bias), activation), in)[0];
}

}  // namespace norma
