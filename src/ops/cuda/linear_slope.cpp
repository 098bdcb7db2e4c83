// A layer's activation made again, and the gradient through it, on the GPU: in one kernel where there is one, else one
// after the other.
#include "norma/ops/linear_slope.h"

#include <array>

#include "norma/ops/linear.h"
#include "norma/ops/matmul_slope.h"
#include "ops/cuda/hopper_product.h"

namespace norma {

cuda::Program cuda_kernel(const Linear& op, Types in, Types out);
cuda::Program cuda_kernel(const MatMulSlope& op, Types in, Types out);

cuda::Program cuda_kernel(const LinearSlope& op, Types in, Types out) {
  const std::array both = {out[1], out[1]};
  const std::array slope_in = {in[0], in[1], out[0]};
  const auto make = cuda_kernel(Linear(op.has_bias(), op.activation()), in.subspan(2), both).launch;
  const auto slope = cuda_kernel(MatMulSlope(op.activation(), op.gradient_weight()), slope_in, out.first(1)).launch;
  const bool bias = op.has_bias();
  const bool pairs = in[0].dtype == DType::bf16 && op.gradient_weight() == Transpose::yes;
  const cuda::ProductPair sizes{
      .m = in[2].shape.rows(), .n = in[3].shape[1], .made_k = in[3].shape[0], .gradient_k = in[0].shape.channels()};
  return {.launch =
              [=, f = op.activation()](const cuda::Call& call) {
                cuda::ProductPair pair = sizes;
                pair.dy = call.in(0), pair.gradient_weight = call.in(1), pair.x = call.in(2), pair.weight = call.in(3);
                pair.bias = bias ? call.in(4) : cuda::kAbsent;
                pair.dz = call.out(0), pair.y = call.out(1);
                if (pairs && cuda::fits(pair) && cuda::has_hopper_products())
                  return cuda::made_and_sloped(pair, f, call.members, call.stream);
                const std::int64_t z = call.scratch;
                const std::array made = {pair.x, pair.weight, bias ? pair.bias : pair.y, bias ? pair.y : z, z};
                cuda::Call part = call;
                part.offsets = made.data();
                part.inputs = bias ? 3 : 2;
                if (const int error = make(part)) return error;
                const std::array sloped = {pair.dy, pair.gradient_weight, f == Activation::relu ? pair.y : z, pair.dz};
                part.offsets = sloped.data();
                part.inputs = 3;
                return slope(part);
              },
          .scratch_bytes = out[0].bytes()};
}

}  // namespace norma
