// Matrix products on the GPU.
#include "norma/ops/matmul.h"

#include "device/cuda/products.h"
#include "ops/cuda/hopper_product.h"
#include "ops/cuda/thin_product.h"

namespace norma {

cuda::Program cuda_kernel(const MatMul& op, Types in, Types out) {
  const MatMul::Sizes s = op.sizes(in);
  const bool batched = op.product() == Product::batched;
  cuda::Product product{
      .m = s.m,
      .n = s.n,
      .k = s.k,
      .transpose_a = op.product() == Product::reduce_rows || (batched && op.transpose_a() == Transpose::yes),
      .transpose_b = op.product() != Product::reduce_rows && op.transpose_b() == Transpose::yes,
      .a = in[0].dtype,
      .b = in[1].dtype,
      .c = out[0].dtype,
      .accumulate = op.accumulates(),
      .batch = s.batch,
      .batch_a = s.m * s.k,
      .batch_b = s.k * s.n,
      .batch_c = s.m * s.n};
  const bool narrow = op.product() == Product::rows && !product.accumulate && product.a == DType::bf16 &&
                      product.b == DType::bf16 && product.c == DType::bf16;
  return {.launch = [=](const cuda::Call& call) {
    if (narrow) {
      const cuda::FusedProduct plain{
          .m = product.m, .n = product.n, .k = product.k, .a = call.in(0), .b = call.in(1), .out = call.out(0)};
      if (cuda::plain_product_pays(plain, call.members)) {
        return cuda::plain_product(plain, product.transpose_b ? Transpose::yes : Transpose::no, call.members,
                                   call.stream);
      }
    }
    cuda::Product now = product;
    now.math = call.math;
    const cuda::ThinProduct thin{.members = call.members,
                                 .rows = product.m,
                                 .a = call.in(0),
                                 .b = call.in(1),
                                 .out = call.out(0),
                                 .transpose_b = product.transpose_b};
    if (!batched && cuda::is_thin(now, thin)) return cuda::thin_product(thin, Activation::none, call.stream);
    const cuda::Operands operands{
        .a = call.in(0), .b = call.in(1), .c = call.out(0), .c0 = product.accumulate ? call.in(2) : cuda::kAbsent};
    return call.products->run(now, call.members, operands, call.stream);
  }};
}

}  // namespace norma
