// Matrix products on the GPU, through cuBLASLt. The algorithm of a shape is asked for once and kept: two runs take the
// same one, and so give the same bits. It may differ with the number of members.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "device/cuda/resources.h"
#include "norma/core/dtype.h"
#include "norma/device/cuda/kernel.h"

struct cublasLtContext;

namespace norma::cuda {

// C = op(A) op(B) + beta C0, row-major: op(A)[m, k], op(B)[k, n], C[m, n]; sums in f32.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // A is stored [k, m], B [n, k]
  DType a = DType::f32, b = DType::f32, c = DType::f32;
  Math math = Math::f32;
  bool accumulate = false;  // beta: 0 or 1; C0 has C's type and may lie where C lies
  bool relu = false;        // of the result, with the bias added
  // Products of each member, and the distance from one to the next in elements.
  std::int64_t batch = 1, batch_a = 0, batch_b = 0, batch_c = 0;
};

// Offsets of each member, in bytes.
struct Operands {
  std::int64_t a = 0, b = 0, c = 0;
  std::int64_t c0 = kAbsent;    // if it accumulates
  std::int64_t bias = kAbsent;  // [n] of C's type, added to every row
};

// Of one session: calls must come one after another, on streams that are ordered with each other.
class Products {
 public:
  Products();  // on the current device
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  // Enqueues; 0 or a cudaError_t. Throws Error that names the product where the library does not take it.
  int run(const Product& product, const Members& members, const Operands& operands, Stream stream);
  std::int64_t runs() const { return runs_; }  // so far; members are always taken in order

 private:
  struct Key;
  struct Prepared;
  Prepared& prepare(const Key& key);
  const std::byte* side_by_side_biases(std::int64_t bytes);
  int enqueue(const Product& product, const Members& members, const Operands& operands, Stream stream);

  std::int64_t runs_ = 0;
  cublasLtContext* handle_ = nullptr;
  void* workspace_ = nullptr;
  DeviceBytes biases_;  // of far members
  std::int64_t biases_bytes_ = 0;
  std::map<Key, std::unique_ptr<Prepared>> prepared_;
};

}  // namespace norma::cuda
