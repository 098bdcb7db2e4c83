// Attention of one node over its neighbours: two walks over them, the second adds up.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/neighbour_attention_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "ops/neighbour_attention.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {
namespace neighbour_attention_detail {

template <typename T>
HWY_INLINE T score(const AttentionSizes& s, const AttentionTensors<T>& t, std::int64_t i, std::int64_t j,
                   std::int64_t head) {
  const T z = t.query[i * s.heads + head] + t.key[j * s.heads + head];
  return z > T{0} ? z : static_cast<T>(s.slope) * z;
}

template <typename T>
HWY_INLINE void add_scaled(T by, const T* row, T* y, std::int64_t n) {
  for_lanes<T>(n, [&](auto d, std::int64_t c) HWY_ATTR {
    hn::StoreU(hn::MulAdd(hn::Set(d, by), hn::LoadU(d, row + c), hn::LoadU(d, y + c)), d, y + c);
  });
}

template <typename T>
HWY_INLINE T inner_product(const T* a, const T* b, std::int64_t n) {
  return sum_over<T>(
      n, [&](auto d, std::int64_t c) HWY_ATTR { return hn::Mul(hn::LoadU(d, a + c), hn::LoadU(d, b + c)); });
}

// A neighbour that does not exist makes everything of this node NaN.
template <typename T>
HWY_INLINE bool all_exist(const AttentionSizes& s, const std::int32_t* to, std::int64_t count) {
  for (std::int64_t e = 0; e < count; ++e) {
    if (to[e] < 0 || to[e] >= s.nodes) return false;
  }
  return true;
}

template <typename T>
HWY_INLINE void fill_row(T* y, std::int64_t n, T value) {
  for (std::int64_t c = 0; c < n; ++c) y[c] = value;
}

template <typename T>
HWY_INLINE void forward(const AttentionSizes& s, const AttentionTensors<T>& t, std::int64_t node,
                        const std::int32_t* to, std::int64_t count, T* y, T* logs) {
  const bool sound = all_exist<T>(s, to, count);
  fill_row(y, s.heads * s.width, sound ? T{0} : static_cast<T>(NAN));
  if (logs != nullptr) fill_row(logs, s.heads, sound ? T{0} : static_cast<T>(NAN));
  if (!sound || count == 0) return;
  for (std::int64_t head = 0; head < s.heads; ++head) {
    T largest = score(s, t, node, to[0], head);
    for (std::int64_t e = 1; e < count; ++e) {
      const T z = score(s, t, node, to[e], head);
      largest = z > largest || std::isnan(z) ? z : largest;
    }
    T* const own = y + head * s.width;
    T sum = 0;
    for (std::int64_t e = 0; e < count; ++e) {
      const T weight = std::exp(score(s, t, node, to[e], head) - largest);
      sum += weight;
      add_scaled(weight, t.x + (to[e] * s.heads + head) * s.width, own, s.width);
    }
    const T share = T{1} / sum;
    for (std::int64_t c = 0; c < s.width; ++c) own[c] *= share;
    if (logs != nullptr) logs[head] = largest + std::log(sum);
  }
}

// With a(i, j) the weights: dx[j] = sum of a(i, j) dy[i], and of a score a(i, j) (dy[i] . x[j] - dy[i] . y[i]), which
// its slope hands on to query[i] and key[j].
template <typename T>
HWY_INLINE void backward(const AttentionSizes& s, const AttentionTensors<T>& t, std::int64_t node,
                         const std::int32_t* to, std::int64_t count, T* dx, T* dquery, T* dkey) {
  const bool sound = all_exist<T>(s, to, count);
  const T start = sound ? T{0} : static_cast<T>(NAN);
  fill_row(dx, s.heads * s.width, start);
  fill_row(dquery, s.heads, start);
  fill_row(dkey, s.heads, start);
  if (!sound) return;
  const auto of_score = [&](std::int64_t i, std::int64_t j, std::int64_t head, T weight) HWY_ATTR {
    const std::int64_t at = i * s.heads + head;
    const T slope = t.query[at] + t.key[j * s.heads + head] > T{0} ? T{1} : static_cast<T>(s.slope);
    const T product = inner_product(t.dy + at * s.width, t.x + (j * s.heads + head) * s.width, s.width);
    return slope * weight * (product - t.means[at]);
  };
  for (std::int64_t head = 0; head < s.heads; ++head) {
    for (std::int64_t e = 0; e < count; ++e) {
      const std::int64_t other = to[e];
      const T out = std::exp(score(s, t, node, other, head) - t.logs[node * s.heads + head]);
      const T in = std::exp(score(s, t, other, node, head) - t.logs[other * s.heads + head]);
      dquery[head] += of_score(node, other, head, out);
      dkey[head] += of_score(other, node, head, in);
      add_scaled(in, t.dy + (other * s.heads + head) * s.width, dx + head * s.width, s.width);
    }
  }
}

}  // namespace neighbour_attention_detail

void neighbour_attention_f32(const AttentionSizes& s, const AttentionTensors<float>& t, std::int64_t node,
                             const std::int32_t* to, std::int64_t count, float* y, float* logs) {
  neighbour_attention_detail::forward(s, t, node, to, count, y, logs);
}
void neighbour_attention_f64(const AttentionSizes& s, const AttentionTensors<double>& t, std::int64_t node,
                             const std::int32_t* to, std::int64_t count, double* y, double* logs) {
  neighbour_attention_detail::forward(s, t, node, to, count, y, logs);
}
void neighbour_attention_backward_f32(const AttentionSizes& s, const AttentionTensors<float>& t, std::int64_t node,
                                      const std::int32_t* to, std::int64_t count, float* dx, float* dquery,
                                      float* dkey) {
  neighbour_attention_detail::backward(s, t, node, to, count, dx, dquery, dkey);
}
void neighbour_attention_backward_f64(const AttentionSizes& s, const AttentionTensors<double>& t, std::int64_t node,
                                      const std::int32_t* to, std::int64_t count, double* dx, double* dquery,
                                      double* dkey) {
  neighbour_attention_detail::backward(s, t, node, to, count, dx, dquery, dkey);
}
float neighbour_dot_f32(const float* a, const float* b, std::int64_t n) {
  return neighbour_attention_detail::inner_product(a, b, n);
}
double neighbour_dot_f64(const double* a, const double* b, std::int64_t n) {
  return neighbour_attention_detail::inner_product(a, b, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma {

HWY_EXPORT(neighbour_attention_f32);
HWY_EXPORT(neighbour_attention_f64);
HWY_EXPORT(neighbour_attention_backward_f32);
HWY_EXPORT(neighbour_attention_backward_f64);
HWY_EXPORT(neighbour_dot_f32);
HWY_EXPORT(neighbour_dot_f64);

template <>
NeighbourAttentionFunctions<float> neighbour_attention_functions() {
  return {NORMA_SIMD(neighbour_attention_f32), NORMA_SIMD(neighbour_attention_backward_f32),
          NORMA_SIMD(neighbour_dot_f32)};
}
template <>
NeighbourAttentionFunctions<double> neighbour_attention_functions() {
  return {NORMA_SIMD(neighbour_attention_f64), NORMA_SIMD(neighbour_attention_backward_f64),
          NORMA_SIMD(neighbour_dot_f64)};
}

}  // namespace norma
#endif  // HWY_ONCE
