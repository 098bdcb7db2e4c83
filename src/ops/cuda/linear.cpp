// A product with its bias, and its activation, on the GPU.
#include "norma/ops/linear.h"

#include <array>

#include "device/cuda/products.h"
#include "ops/cuda/hopper_product.h"
#include "ops/cuda/thin_product.h"

namespace norma {

cuda::Program cuda_kernel(const ActivationOp& op, Types in, Types out);

cuda::Program cuda_kernel(const Linear& op, Types in, Types out) {
  const cuda::Product product{.m = in[0].shape.rows(),
                              .n = in[1].shape[1],
                              .k = in[1].shape[0],
                              .a = in[0].dtype,
                              .b = in[1].dtype,
                              .c = out[0].dtype};
  const bool bias = op.has_bias(), relu = op.activation() == Activation::relu;
  const bool narrow = in[0].dtype == DType::bf16 && in[1].dtype == DType::bf16 && out[0].dtype == DType::bf16 &&
                      (!bias || in[2].dtype == DType::bf16);
  std::function<int(const cuda::Call&)> activate;
  if (op.activation() != Activation::none) {
    const std::array type = {out[0]};
    activate = cuda_kernel(ActivationOp(op.activation()), type, type).launch;
  }
  return {.launch = [=, f = op.activation()](const cuda::Call& call) {
    const bool before = activate && call.out(1) >= 0;  // whether the value before the activation is wanted
    if (narrow && !relu) {
      cuda::FusedProduct own{.m = product.m,
                             .n = product.n,
                             .k = product.k,
                             .a = call.in(0),
                             .b = call.in(1),
                             .bias = bias ? call.in(2) : cuda::kAbsent,
                             .out = call.out(0)};
      if (activate) own.before = call.out(1);
      if (activate && cuda::fits(own) && cuda::has_hopper_products())
        return cuda::activated_product(own, f, call.members, call.stream);
      if (!activate && cuda::plain_product_pays(own, call.members))
        return cuda::plain_product(own, Transpose::no, call.members, call.stream);
    }
    cuda::Product now = product;
    now.math = call.math;
    now.relu = relu && !before;
    const cuda::ThinProduct thin{
        .members = call.members, .rows = product.m, .a = call.in(0), .b = call.in(1), .out = call.out(0)};
    if (!bias && !activate && cuda::is_thin(now, thin)) return cuda::thin_product(thin, Activation::none, call.stream);
    const cuda::Operands operands{.a = call.in(0),
                                  .b = call.in(1),
                                  .c = before ? call.out(1) : call.out(0),
                                  .bias = bias ? call.in(2) : cuda::kAbsent};
    if (const int error = call.products->run(now, call.members, operands, call.stream)) return error;
    if (!activate || now.relu) return 0;
    const std::array offsets = {operands.c, call.out(0)};
    cuda::Call second = call;
    second.offsets = offsets.data();
    second.inputs = 1;
    return activate(second);
  }};
}

}  // namespace norma
