// Gradients by several weights and biases on the GPU: in one launch where there is a kernel for that, else one after
// the other.
#include "norma/ops/weight_gradients.h"

#include <algorithm>

#include "device/cuda/products.h"
#include "norma/ops/column_sums.h"
#include "ops/cuda/hopper_product.h"

namespace norma {

cuda::Program cuda_kernel(const ColumnSums& op, Types in, Types out);

namespace {

// Whether tiles are so few and sums so long that most of a card would wait for them: the library divides sums, one
// launch of ours does not. By sizes alone, so that every card and number of members adds in the same order.
bool few_and_long(const std::vector<cuda::Product>& products) {
  constexpr std::int64_t kSide = 128, kFewTiles = 64, kLongRows = 8192;
  std::int64_t tiles = 0, rows = 0;
  for (const cuda::Product& one : products) {
    tiles += (one.m + kSide - 1) / kSide * ((one.n + kSide - 1) / kSide);
    rows = std::max(rows, one.k);
  }
  return tiles < kFewTiles && rows > kLongRows;
}

}  // namespace

cuda::Program cuda_kernel(const WeightGradients& op, Types in, Types out) {
  const std::size_t count = op.has_bias().size();
  std::vector<cuda::Product> products;
  std::vector<int> biases;  // by product: its output, or -1
  std::vector<Type> summed;
  for (std::size_t k = 0; k < count; ++k) {
    products.push_back({.m = out[k].shape[0],
                        .n = out[k].shape[1],
                        .k = in[2 * k].shape.rows(),
                        .transpose_a = true,
                        .a = in[2 * k].dtype,
                        .b = in[2 * k + 1].dtype,
                        .c = out[k].dtype});
    biases.push_back(op.has_bias()[k] ? static_cast<int>(count + summed.size()) : -1);
    if (op.has_bias()[k]) summed.push_back(in[2 * k + 1]);
  }
  cuda::Program sums;
  if (!summed.empty()) sums = cuda_kernel(ColumnSums(), summed, out.subspan(count));
  const auto all_are = [](Types types, DType dtype) {
    return std::all_of(types.begin(), types.end(), [=](const Type& type) { return type.dtype == dtype; });
  };
  const bool together = all_are(in, DType::bf16) && all_are(out, DType::f32) && !few_and_long(products);
  const auto launch = [=, sum = sums.launch](const cuda::Call& call) {
    std::vector<cuda::WeightProduct> all;
    std::vector<std::int64_t> offsets;  // of tensors to be summed, then of their sums
    for (std::size_t k = 0; k < products.size(); ++k) {
      const int index = static_cast<int>(k);
      all.push_back({.rows = products[k].k,
                     .m = products[k].m,
                     .n = products[k].n,
                     .a = call.in(2 * index),
                     .b = call.in(2 * index + 1),
                     .out = call.out(index),
                     .sums = biases[k] < 0 ? cuda::kAbsent : call.out(biases[k])});
      if (biases[k] >= 0) offsets.push_back(call.in(2 * index + 1));
    }
    const auto suits = [](const cuda::WeightProduct& one) { return cuda::fits(one); };
    if (together && cuda::has_hopper_products() && std::all_of(all.begin(), all.end(), suits))
      return cuda::weight_products(all, call.members, call.stream);
    for (std::size_t k = 0; k < products.size(); ++k) {
      cuda::Product now = products[k];
      now.math = call.math;
      const cuda::Operands operands{.a = all[k].a, .b = all[k].b, .c = all[k].out};
      if (const int error = call.products->run(now, call.members, operands, call.stream)) return error;
      if (biases[k] >= 0) offsets.push_back(all[k].sums);
    }
    if (!sum) return 0;
    cuda::Call second = call;
    second.offsets = offsets.data();
    second.inputs = static_cast<int>(offsets.size() / 2);
    return sum(second);
  };
  return {.launch = launch, .scratch_bytes = sums.scratch_bytes};
}

}  // namespace norma
