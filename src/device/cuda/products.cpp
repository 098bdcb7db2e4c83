#include "device/cuda/products.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <compare>
#include <string>

#include "device/cuda/check.h"
#include "device/cuda/copy.h"
#include "device/cuda/one_at_a_time.h"
#include "norma/core/error.h"

namespace norma::cuda {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // what the library recommends for Hopper

// Where its epilogue reads a bias or what is there, the library counts bytes from the first member in 32 bits. Products
// that add to what is there are cut to that; biases of far members are put side by side first.
constexpr std::int64_t kFarthestBytes = std::int64_t{1} << 31;

void check_library(cublasStatus_t status, std::string_view doing) {
  if (status != CUBLAS_STATUS_SUCCESS) fail("{}: cuBLASLt reports {}", doing, cublasLtGetStatusName(status));
}

cudaDataType_t data_type(DType dtype) {
  NORMA_ASSERT(dtype == DType::f32 || dtype == DType::bf16);
  return dtype == DType::f32 ? CUDA_R_32F : CUDA_R_16BF;
}

// The largest power of two up to 256 that divides a byte offset.
int alignment_of(std::int64_t offset) {
  int alignment = 256;
  while (offset % alignment != 0) alignment /= 2;
  return alignment;
}

cublasLtMatrixLayout_t layout(DType dtype, std::int64_t rows, std::int64_t columns, int count, std::int64_t stride) {
  cublasLtMatrixLayout_t made = nullptr;
  check_library(cublasLtMatrixLayoutCreate(&made, data_type(dtype), static_cast<std::uint64_t>(rows),
                                           static_cast<std::uint64_t>(columns), rows),
                "describing a matrix");
  cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
  cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
  return made;
}

}  // namespace

// Everything that the choice of an algorithm may depend on. Strides are in elements.
struct Products::Key {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b, accumulate, relu, bias, tf32;
  DType a, b, c;
  int count;
  std::int64_t stride_a, stride_b, stride_c, stride_bias;
  int align_a, align_b, align_c, align_c0;

  auto operator<=>(const Key&) const = default;

  std::string describe() const {
    return fmt::format("{} products of {}[{}, {}]{} and {}[{}, {}]{}{}{}{}{}", count, name_of(a), m, k,
                       transpose_a ? " stored transposed" : "", name_of(b), k, n,
                       transpose_b ? " stored transposed" : "", bias ? " with a bias" : "", relu ? " and relu" : "",
                       accumulate ? ", added to what is there" : "", tf32 ? ", TF32" : "");
  }
};

// The library's matrices are column-major, so it computes C' = B' A'.
struct Products::Prepared {
  Prepared(const Key& key, cublasLtHandle_t handle) {
    const auto compute = key.a == DType::f32 && key.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    check_library(cublasLtMatmulDescCreate(&operation, compute, CUDA_R_32F), "describing a product");
    set(CUBLASLT_MATMUL_DESC_TRANSA, key.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, key.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    const auto epilogue = key.bias   ? (key.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
                          : key.relu ? CUBLASLT_EPILOGUE_RELU
                                     : CUBLASLT_EPILOGUE_DEFAULT;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (key.bias) {
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(key.c));
      set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, key.stride_bias);
    }
    b = layout(key.b, key.transpose_b ? key.k : key.n, key.transpose_b ? key.n : key.k, key.count, key.stride_b);
    a = layout(key.a, key.transpose_a ? key.m : key.k, key.transpose_a ? key.k : key.m, key.count, key.stride_a);
    c = layout(key.c, key.n, key.m, key.count, key.stride_c);
    choose(key, handle);
  }
  ~Prepared() {
    for (cublasLtMatrixLayout_t made : {a, b, c}) cublasLtMatrixLayoutDestroy(made);
    cublasLtMatmulDescDestroy(operation);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  template <typename Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) const {
    check_library(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value), "describing a product");
  }

  void choose(const Key& key, cublasLtHandle_t handle) {
    cublasLtMatmulPreference_t preference = nullptr;
    check_library(cublasLtMatmulPreferenceCreate(&preference), "choosing a product's algorithm");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(key.align_b));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(key.align_a));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(key.align_c0));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(key.align_c));
    std::array<cublasLtMatmulHeuristicResult_t, 8> best{};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, operation, b, a, c, c, preference,
                                                                 static_cast<int>(best.size()), best.data(), &found);
    cublasLtMatmulPreferenceDestroy(preference);
    const auto end = best.begin() + (status == CUBLAS_STATUS_SUCCESS ? found : 0);
    for (auto one = best.begin(); one != end; ++one) {
      if (one->state == CUBLAS_STATUS_SUCCESS && one->workspaceSize <= kWorkspaceBytes) algorithms.push_back(one->algo);
    }
    if (algorithms.empty()) fail("cuBLASLt knows no algorithm for {}", key.describe());
  }

  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  std::vector<cublasLtMatmulAlgo_t> algorithms = {};  // best first
};

Products::Products() {
  check_library(cublasLtCreate(&handle_), "opening cuBLASLt");
  check(cudaMalloc(&workspace_, kWorkspaceBytes), "taking memory for matrix products");
}

Products::~Products() {
  prepared_.clear();
  cudaFree(workspace_);
  cublasLtDestroy(handle_);
}

Products::Prepared& Products::prepare(const Key& key) {
  std::unique_ptr<Prepared>& made = prepared_[key];
  if (made == nullptr) made = std::make_unique<Prepared>(key, handle_);
  return *made;
}

// Grows in the first run of a session, which is not recorded.
const std::byte* Products::side_by_side_biases(std::int64_t bytes) {
  if (bytes > biases_bytes_) {
    const std::lock_guard lock(one_at_a_time());
    check(cudaDeviceSynchronize(), "waiting for the GPU");
    biases_ = DeviceBytes(static_cast<std::size_t>(bytes));
    biases_bytes_ = bytes;
  }
  return biases_.data();
}

int Products::run(const Product& product, const Members& either_way, const Operands& operands, Stream stream) {
  const Members members = in_order(either_way);
  ++runs_;
  const std::int64_t reach = std::max<std::int64_t>(1, kFarthestBytes / members.stride);
  if (product.batch == 1 && product.accumulate && reach < members.count) {
    for (std::int64_t first = 0; first < members.count; first += reach) {
      Members some = members;
      some.base += first * members.stride;
      some.count = static_cast<int>(std::min<std::int64_t>(reach, members.count - first));
      if (const int error = enqueue(product, some, operands, stream)) return error;
    }
    return 0;
  }
  if (product.batch == 1 || members.count == 1) return enqueue(product, members, operands, stream);
  // The library knows one stride: whichever of the two is shorter is walked here.
  const auto size = [](DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); };
  if (members.count <= product.batch) {
    for (int member = 0; member < members.count; ++member) {
      const Members one{members.base + member * members.stride, members.stride, 1, nullptr};
      if (const int error = enqueue(product, one, operands, stream)) return error;
    }
    return 0;
  }
  Product one = product;
  one.batch = 1;
  for (std::int64_t index = 0; index < product.batch; ++index) {
    Operands moved = operands;
    moved.a += index * product.batch_a * size(product.a);
    moved.b += index * product.batch_b * size(product.b);
    moved.c += index * product.batch_c * size(product.c);
    if (moved.c0 >= 0) moved.c0 += index * product.batch_c * size(product.c);
    if (const int error = enqueue(one, members, moved, stream)) return error;
  }
  return 0;
}

int Products::enqueue(const Product& product, const Members& members, const Operands& operands, Stream stream) {
  NORMA_ASSERT(!product.accumulate || operands.c0 >= 0);
  const bool per_member = product.batch == 1;
  const auto stride = [&](DType dtype, std::int64_t own) {
    return per_member ? members.stride / static_cast<std::int64_t>(size_of(dtype)) : own;
  };
  const std::int64_t c0 = operands.c0 < 0 ? operands.c : operands.c0;
  const bool far_bias =
      operands.bias >= 0 && per_member && members.count > 1 && members.count > kFarthestBytes / members.stride;
  const Key key{.m = product.m,
                .n = product.n,
                .k = product.k,
                .transpose_a = product.transpose_a,
                .transpose_b = product.transpose_b,
                .accumulate = product.accumulate,
                .relu = product.relu,
                .bias = operands.bias >= 0,
                .tf32 = product.math == Math::tf32,
                .a = product.a,
                .b = product.b,
                .c = product.c,
                .count = per_member ? members.count : static_cast<int>(product.batch),
                .stride_a = stride(product.a, product.batch_a),
                .stride_b = stride(product.b, product.batch_b),
                .stride_c = stride(product.c, product.batch_c),
                .stride_bias = far_bias     ? product.n
                               : per_member ? stride(product.c, 0)
                                            : 0,
                .align_a = alignment_of(operands.a),
                .align_b = alignment_of(operands.b),
                .align_c = alignment_of(operands.c),
                .align_c0 = alignment_of(c0)};
  Prepared& prepared = prepare(key);
  const float alpha = 1, beta = product.accumulate ? 1.0f : 0.0f;
  std::byte* const base = members.base;
  if (key.bias) {
    const void* bias = base + operands.bias;
    if (far_bias) {
      const std::int64_t bytes = product.n * static_cast<std::int64_t>(size_of(product.c));
      bias = side_by_side_biases(bytes * members.count);
      if (const int error = gather(biases_.data(), members, operands.bias, bytes, stream)) return error;
    }
    prepared.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  // The heuristic also names algorithms that do not start: they are left out from the first time on.
  for (;;) {
    const cublasStatus_t status =
        cublasLtMatmul(handle_, prepared.operation, &alpha, base + operands.b, prepared.b, base + operands.a,
                       prepared.a, &beta, base + c0, prepared.c, base + operands.c, prepared.c,
                       &prepared.algorithms.front(), workspace_, kWorkspaceBytes, stream);
    if (status == CUBLAS_STATUS_SUCCESS) return cudaSuccess;
    if (prepared.algorithms.size() == 1)
      fail("{}: cuBLASLt reports {}, CUDA {}", key.describe(), cublasLtGetStatusName(status),
           cudaGetErrorName(cudaPeekAtLastError()));
    cudaGetLastError();
    prepared.algorithms.erase(prepared.algorithms.begin());
  }
}

}  // namespace norma::cuda
