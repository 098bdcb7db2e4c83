// Launches of hopper_product.cuh.
#pragma once

#include <cudaTypedefs.h>

#include <algorithm>

#include "ops/cuda/hopper_product_ends.cuh"
#include "ops/cuda/multiprocessors.cuh"

namespace norma::cuda::product {

// A tensor of every member, row-major [rows, columns] of bf16.
struct Matrix {
  std::int64_t offset = 0;
  std::int64_t rows = 0, columns = 0;
};

// A function of the driver, or null.
template <class Function>
Function driver_entry(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) found = nullptr;
  return reinterpret_cast<Function>(found);
}

inline PFN_cuTensorMapEncodeTiled_v12000 map_encoder() {
  static const auto encoder = driver_entry<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled");
  return encoder;
}

// Boxes of 64 columns and so many rows, swizzled as attention_wgmma.cuh has its tiles.
inline bool make_map(CUtensorMap& map, const Members& members, const Matrix& matrix, unsigned rows_of_box) {
  const auto encoder = map_encoder();
  if (encoder == nullptr) return false;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(matrix.columns), static_cast<cuuint64_t>(matrix.rows),
                              static_cast<cuuint64_t>(members.count)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(matrix.columns) * sizeof(Element),
                                static_cast<cuuint64_t>(members.stride)};
  const cuuint32_t box[] = {64, rows_of_box, 1}, every[] = {1, 1, 1};
  return encoder(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, members.base + matrix.offset, sizes, strides, box, every,
                 CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// One product more: C[m, n] = A B, where A is [m, k] (kAlongA) or [k, m], B [n, k] (kAlongB) or [k, n].
template <bool kAlongA, bool kAlongB, int kMost>
bool add_product(Group<kMost>& group, const Matrix& a, const Matrix& b, std::int64_t out) {
  One& one = group.of[group.count++];
  one.m = static_cast<std::int32_t>(kAlongA ? a.rows : a.columns);
  one.k = static_cast<std::int32_t>(kAlongA ? a.columns : a.rows);
  one.n = static_cast<std::int32_t>(kAlongB ? b.rows : b.columns);
  one.out = out;
  one.first = group.tiles;
  one.across = static_cast<std::int32_t>(divide_up(one.n, kSide));
  group.tiles += one.across * static_cast<std::int32_t>(divide_up(one.m, kSide));
  return make_map(one.a, group.members, a, kAlongA ? kSide : kDepth) &&
         make_map(one.b, group.members, b, kAlongB ? kSide : kDepth);
}

template <bool kAlongA, bool kAlongB, int kResident, class End, int kMost>
int launch_products(const Group<kMost>& group, const End& end, Stream stream) {
  constexpr auto kKernel = product_kernel<kAlongA, kAlongB, End, kMost, kResident>;
  constexpr int kShared = kSharedBytes<kResident>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  if (allowed != cudaSuccess) return allowed;
  const int blocks = std::min(group.tiles * group.members.count, kResident * multiprocessors());
  kKernel<<<static_cast<unsigned>(blocks), kThreadsOfProduct, kShared, stream>>>(group, end);
  return launched();
}

// Whether each tile can have a multiprocessor to itself; the results are the same.
template <int kMost>
bool has_few_tiles(const Group<kMost>& group) {
  return group.tiles * group.members.count <= multiprocessors();
}

}  // namespace norma::cuda::product
