#include "bench/cuda/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace norma::bench {
namespace {

// One query of one head.
class Row {
 public:
  Row(const AttentionSetup& setup, const AttentionInputs& inputs, int sample, int head, int query)
      : setup_(setup),
        inputs_(inputs),
        q_((static_cast<std::size_t>(sample * setup.queries + query) * static_cast<std::size_t>(setup.heads) +
            static_cast<std::size_t>(head)) *
           static_cast<std::size_t>(setup.width)),
        lse_(static_cast<std::size_t>((sample * setup.heads + head) * setup.queries + query)) {
    int seen = setup.key_count();
    if (!setup.lengths.empty()) seen = std::clamp(setup.lengths[static_cast<std::size_t>(sample)], 0, seen);
    if (setup.mask == cuda::KeyMask::causal) seen = std::min(seen, query + 1);
    const int kv_head = head / (setup.heads / setup.kv_count());
    for (int key = 0; key < seen; ++key) {
      keys_.push_back(
          (static_cast<std::size_t>(sample * setup.key_count() + key) * static_cast<std::size_t>(setup.kv_count()) +
           static_cast<std::size_t>(kv_head)) *
          static_cast<std::size_t>(setup.width));
    }
  }

  void forward(AttentionResults& results) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (const std::size_t key : keys_) {
      p_.push_back(setup_.factor() * dot(inputs_.q, q_, inputs_.k, key));
      largest = std::max(largest, p_.back());  // a NaN is lost here and comes back with the sum
    }
    for (double& p : p_) sum += p = std::exp(p - largest);
    for (double& p : p_) p /= sum;
    results.lse[lse_] = largest + std::log(sum);
    for (std::size_t j = 0; j < keys_.size(); ++j) add(results.context, q_, p_[j], inputs_.v, keys_[j]);
  }

  void backward(AttentionResults& results) const {
    std::vector<double> dp;
    double delta = 0;
    for (std::size_t j = 0; j < keys_.size(); ++j) {
      dp.push_back(dot(inputs_.dcontext, q_, inputs_.v, keys_[j]));
      delta += p_[j] * dp[j];
    }
    for (std::size_t j = 0; j < keys_.size(); ++j) {
      const double ds = setup_.factor() * p_[j] * (dp[j] - delta);
      const double size = std::abs(setup_.factor() * p_[j] * dp[j]);
      if (std::isfinite(size)) results.score_gradient = std::max(results.score_gradient, size);
      add(results.dq, q_, ds, inputs_.k, keys_[j]);
      add(results.dk, keys_[j], ds, inputs_.q, q_);
      add(results.dv, keys_[j], p_[j], inputs_.dcontext, q_);
    }
  }

 private:
  double dot(const std::vector<double>& a, std::size_t a_at, const std::vector<double>& b, std::size_t b_at) const {
    double sum = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(setup_.width); ++c) sum += a[a_at + c] * b[b_at + c];
    return sum;
  }
  void add(std::vector<double>& to, std::size_t to_at, double factor, const std::vector<double>& from,
           std::size_t from_at) const {
    for (std::size_t c = 0; c < static_cast<std::size_t>(setup_.width); ++c)
      to[to_at + c] += factor * from[from_at + c];
  }

  const AttentionSetup& setup_;
  const AttentionInputs& inputs_;
  std::size_t q_, lse_;
  std::vector<std::size_t> keys_;
  std::vector<double> p_;
};

}  // namespace

AttentionResults attention_reference(const AttentionSetup& setup, const AttentionInputs& inputs) {
  AttentionResults results;
  results.context.assign(inputs.q.size(), 0.0);
  results.dq.assign(inputs.q.size(), 0.0);
  results.dk.assign(inputs.k.size(), 0.0);
  results.dv.assign(inputs.k.size(), 0.0);
  results.lse.assign(inputs.q.size() / static_cast<std::size_t>(setup.width), 0.0);
  for (int sample = 0; sample < setup.batch; ++sample) {
    for (int head = 0; head < setup.heads; ++head) {
      for (int query = 0; query < setup.queries; ++query) {
        Row row(setup, inputs, sample, head, query);
        row.forward(results);
        if (!inputs.dcontext.empty()) row.backward(results);
      }
    }
  }
  return results;
}

}  // namespace norma::bench
