// A product and the derivative of an activation on the GPU: in one kernel where there is one, else one after the other.
#include "norma/ops/matmul_slope.h"

#include <array>

#include "device/cuda/products.h"
#include "ops/cuda/column_lines.h"
#include "ops/cuda/hopper_product.h"
#include "ops/cuda/thin_product.h"

namespace norma {

cuda::Program cuda_kernel(const ActivationBackward& op, Types in, Types out);

cuda::Program cuda_kernel(const MatMulSlope& op, Types in, Types out) {
  const MatMul::Sizes s = op.product().sizes(in);
  const bool transposed = op.product().transpose_b() == Transpose::yes;
  const cuda::Product product{
      .m = s.m, .n = s.n, .k = s.k, .transpose_b = transposed, .a = in[0].dtype, .b = in[1].dtype, .c = out[0].dtype};
  // Deeper products are faster by the library, even with a pass behind them: at 768 ours takes 0.9 times as long.
  constexpr std::int64_t kDeepest = 1024;
  const bool narrow =
      s.k <= kDeepest && in[0].dtype == DType::bf16 && in[1].dtype == DType::bf16 && out[0].dtype == DType::bf16;
  const std::array types = {out[0], out[0]};
  const auto slope = cuda_kernel(ActivationBackward(op.activation()), types, out.first(1)).launch;
  const auto apart = [=, f = op.activation()](const cuda::Call& call) {
    cuda::Product now = product;
    now.math = call.math;
    const cuda::ThinProduct thin{.members = call.members,
                                 .rows = s.m,
                                 .a = call.in(0),
                                 .b = call.in(1),
                                 .out = call.out(0),
                                 .before = call.in(2),
                                 .transpose_b = transposed};
    if (cuda::is_thin(now, thin)) return cuda::thin_product(thin, f, call.stream);
    const cuda::Operands operands{.a = call.in(0), .b = call.in(1), .c = call.out(0)};
    if (const int error = call.products->run(now, call.members, operands, call.stream)) return error;
    const std::array offsets = {call.in(2), call.out(0), call.out(0)};
    cuda::Call second = call;
    second.offsets = offsets.data();
    second.inputs = 2;
    return slope(second);
  };
  const std::int64_t lines = op.lines();
  const bool each_has_a_line = lines == 0 || lines == (s.m + kRowsOfSlopeLine - 1) / kRowsOfSlopeLine;
  return {.launch = [=, f = op.activation(), type = out[0].dtype](const cuda::Call& call) {
    const cuda::FusedProduct fused{.m = s.m,
                                   .n = s.n,
                                   .k = s.k,
                                   .a = call.in(0),
                                   .b = call.in(1),
                                   .before = call.in(2),
                                   .out = call.out(0),
                                   .lines = lines > 0 ? call.out(1) : cuda::kAbsent};
    if (narrow && transposed && each_has_a_line && cuda::fits(fused) && cuda::has_hopper_products())
      return cuda::sloped_product(fused, f, call.members, call.stream);
    if (const int error = apart(call); error != 0 || lines == 0) return error;
    return cuda::column_lines({.members = call.members,
                               .type = type,
                               .rows = s.m,
                               .width = s.n,
                               .x = call.out(0),
                               .lines = call.out(1),
                               .count = lines},
                              call.stream);
  }};
}

}  // namespace norma
