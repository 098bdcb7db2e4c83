// The largest score and the mean entropy over a few queries of every head, one tile per head.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention_probe.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

template <typename T>
HWY_INLINE void scores_typed(const T* q, const T* k, std::int64_t keys, std::int64_t row, std::int64_t width, T scale,
                             T* scores) {
  for (std::int64_t key = 0; key < keys; ++key, k += row) {
    scores[key] = scale * sum_over<T>(width, [&](auto d, std::int64_t i) HWY_ATTR {
                    return hn::Mul(hn::LoadU(d, q + i), hn::LoadU(d, k + i));
                  });
  }
}

void scores_f32(const float* q, const float* k, std::int64_t keys, std::int64_t row, std::int64_t width, float scale,
                float* scores) {
  scores_typed(q, k, keys, row, width, scale, scores);
}
void scores_f64(const double* q, const double* k, std::int64_t keys, std::int64_t row, std::int64_t width, double scale,
                double* scores) {
  scores_typed(q, k, keys, row, width, scale, scores);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>
#include <limits>

#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/attention_probe.h"
#include "ops/attention_kernel.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(scores_f32);
HWY_EXPORT(scores_f64);

namespace {

// Largest score and entropy of softmax(scores); a NaN anywhere is not hidden.
template <typename T>
struct RowSummary {
  T largest = -std::numeric_limits<T>::infinity();
  double entropy = 0;

  explicit RowSummary(std::span<const T> scores) {
    for (const T score : scores)
      largest = std::isnan(score) || std::isnan(largest) ? score + largest : std::max(largest, score);
    double sum = 0, weighted = 0;
    for (const T score : scores) {
      const double shifted = static_cast<double>(score - largest), weight = std::exp(shifted);
      sum += weight;
      weighted += weight == 0 ? 0 : weight * shifted;
    }
    entropy = std::log(sum) - weighted / sum;
  }
};

}  // namespace

std::string AttentionProbe::attributes() const { return Attention(layout_, options_).attributes(); }

std::vector<Type> AttentionProbe::infer(std::span<const Type> in) const {
  Attention(layout_, options_).infer(in);
  return {{{attention_shape(layout_, options_, in).heads, size}, in[0].dtype}};
}

Wires AttentionProbe::vjp(const VjpContext& context) const { return Wires(context.in.size()); }

void AttentionProbe::choose(Widths& widths) const {
  const auto watched = widths.in.begin() + (layout_ == QkvLayout::packed ? 1 : 3);
  std::fill(widths.in.begin(), watched, std::find(widths.in.begin(), watched, false) == watched);
  widths.out = {false};
}

Cost AttentionProbe::cost(std::span<const Type> in, std::span<const Type>) const {
  const AttentionShape s = attention_shape(layout_, options_, in);
  const double queries = static_cast<double>(std::min(kQueries, s.queries) * s.heads);
  const double pairs = queries * static_cast<double>(s.keys);
  return {.flops = pairs * (2 * static_cast<double>(s.width) + 8),
          .bytes = pairs * static_cast<double>(s.width) * static_cast<double>(size_of(in[0].dtype))};
}

std::string AttentionProbes::attributes() const { return fmt::format("{} x{}", one_.attributes(), count_); }

std::vector<Type> AttentionProbes::infer(std::span<const Type> in) const {
  const auto count = static_cast<std::size_t>(count_);
  if (count_ < 1 || count_ > kMostAttentionProbes) fail("takes 1 to {} probes, not {}", kMostAttentionProbes, count_);
  if (in.size() % count != 0) fail("{} inputs are not those of {} probes alike", in.size(), count_);
  const std::span<const Type> first = in.first(in.size() / count);
  for (std::size_t i = 0; i < in.size(); ++i) check_type("what is probed", in[i], first[i % first.size()]);
  return std::vector<Type>(count, one_.infer(first)[0]);
}

Wires AttentionProbes::reference(std::span<const Wire> in) const {
  const Attention watched(one_.layout(), one_.options());
  const std::size_t each = in.size() / static_cast<std::size_t>(count_);
  Wires all;
  for (std::size_t at = 0; at < in.size(); at += each) all.push_back(attention_probe(watched, in.subspan(at, each)));
  return all;
}

Wires AttentionProbes::vjp(const VjpContext& context) const { return Wires(context.in.size()); }

void AttentionProbes::choose(Widths& widths) const {
  const std::size_t each = widths.in.size() / static_cast<std::size_t>(count_);
  const std::size_t watched = one_.layout() == QkvLayout::packed ? 1 : 3;  // the others are lengths
  bool narrow = true;
  for (std::size_t i = 0; i < widths.in.size(); ++i) narrow = narrow && (i % each >= watched || widths.in[i]);
  for (std::size_t i = 0; i < widths.in.size(); ++i) {
    if (i % each < watched) widths.in[i] = narrow;
  }
  widths.out.assign(widths.out.size(), false);
}

Cost AttentionProbes::cost(std::span<const Type> in, std::span<const Type> out) const {
  const Cost each = one_.cost(in.first(in.size() / static_cast<std::size_t>(count_)), out.first(1));
  return {.flops = count_ * each.flops, .bytes = count_ * each.bytes};
}

CpuKernel cpu_kernel(const AttentionProbe& op, Types in, Types) {
  const AttentionShape s = attention_shape(op.layout(), op.options(), in);
  const bool packed = op.layout() == QkvLayout::packed;
  const int lengths_at = packed ? 1 : 3;
  const bool with_lengths = static_cast<int>(in.size()) > lengths_at;
  const std::int64_t queries = std::min(AttentionProbe::kQueries, s.queries);
  const auto make = [&]<typename T>(auto* scores_of) -> CpuKernel {
    CpuKernel kernel;
    kernel.worker_bytes = s.keys * static_cast<std::int64_t>(sizeof(T));
    kernel.phases.push_back(
        {s.heads, [=](const Call& call, std::int64_t head) {
           const T* q = call.in<T>(0) + head * s.width;
           const std::int64_t kv_head = head / (s.heads / s.kv_heads);
           const T* k = (packed ? call.in<T>(0) + s.heads * s.width : call.in<T>(1)) + kv_head * s.width;
           const std::int64_t visible = s.visible_keys(with_lengths ? call.in<std::int32_t>(lengths_at) : nullptr, 0);
           double largest = -std::numeric_limits<double>::infinity(), spread = 0;
           for (std::int64_t i = 0; i < queries; ++i) {
             const std::int64_t query = ((i + 1) * s.queries) / queries - 1;  // the last one included
             const std::int64_t keys = s.mask == Mask::causal ? std::min(visible, query + 1) : visible;
             if (keys == 0) continue;
             T* scores = call.worker<T>();
             scores_of(q + query * s.q_row, k, keys, s.kv_row, s.width, static_cast<T>(s.scale), scores);
             const RowSummary<T> row(std::span<const T>(scores, static_cast<std::size_t>(keys)));
             const double top = static_cast<double>(row.largest);
             largest = std::isnan(top) || std::isnan(largest) ? top + largest : std::max(largest, top);
             spread += row.entropy;
           }
           call.out<T>(0)[head * AttentionProbe::size + AttentionProbe::logit_max] = static_cast<T>(largest);
           call.out<T>(0)[head * AttentionProbe::size + AttentionProbe::entropy] =
               static_cast<T>(spread / static_cast<double>(queries));
         }});
    return kernel;
  };
  return in[0].dtype == DType::f32 ? make.operator()<float>(NORMA_SIMD(scores_f32))
                                   : make.operator()<double>(NORMA_SIMD(scores_f64));
}

Wire attention_probe(const Attention& watched, std::span<const Wire> inputs) {
  return inputs[0].graph().apply(std::make_shared<AttentionProbe>(watched.layout(), watched.options()), inputs)[0];
}

Wires attention_probes(const Attention& watched, int count, std::span<const Wire> inputs) {
  return inputs[0].graph().apply(std::make_shared<AttentionProbes>(watched.layout(), watched.options(), count), inputs);
}

AttentionSummary read_attention_probe(std::size_t heads, const std::function<double(std::size_t)>& output) {
  AttentionSummary all{-std::numeric_limits<double>::infinity(), 0};
  for (std::size_t head = 0; head < heads; ++head) {
    const double top = output(head * AttentionProbe::size + AttentionProbe::logit_max);
    all.logit_max = std::isnan(top) || std::isnan(all.logit_max) ? top + all.logit_max : std::max(all.logit_max, top);
    all.entropy += output(head * AttentionProbe::size + AttentionProbe::entropy) / static_cast<double>(heads);
  }
  return all;
}

}  // namespace norma
#endif  // HWY_ONCE
