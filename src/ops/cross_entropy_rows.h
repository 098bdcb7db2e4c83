// The two row functions under every cross-entropy kernel, compiled per instruction set.
#pragma once

#include <cstdint>

namespace norma {

template <typename T>
struct CrossEntropyRows {
  // lse of z[n], and the row's loss given its target and smoothing.
  T (*loss)(const T* z, std::int64_t n, std::int32_t target, T smoothing, T* lse);
  // dz = scale (softmax(z) - (1-s) onehot - s/n); dz may be z.
  void (*gradient)(const T* z, std::int64_t n, std::int32_t target, T smoothing, T lse, T scale, T* dz);
};

CrossEntropyRows<float> cross_entropy_rows_f32();
CrossEntropyRows<double> cross_entropy_rows_f64();

template <typename T>
CrossEntropyRows<T> cross_entropy_rows() {
  if constexpr (sizeof(T) == 4) {
    return cross_entropy_rows_f32();
  } else {
    return cross_entropy_rows_f64();
  }
}

// How many rows count, in order.
template <typename T>
T counted_rows(const std::int32_t* targets, std::int64_t rows, std::int32_t ignore) {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < rows; ++row) count += targets[row] != ignore ? 1 : 0;
  return static_cast<T>(count);
}

// Mean of the rows' losses, summed in order; ignored rows hold 0.
template <typename T>
T mean_loss(const T* losses, const std::int32_t* targets, std::int64_t rows, std::int32_t ignore) {
  double sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) sum += static_cast<double>(losses[row]);
  return static_cast<T>(sum / counted_rows<double>(targets, rows, ignore));
}

}  // namespace norma
