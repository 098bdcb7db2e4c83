#include "data/byte_pairs.h"

namespace norma {
namespace {

constexpr std::int32_t kGone = -1;

struct Candidate {
  Merge merge;
  std::size_t left, right;               // places
  std::int32_t left_token, right_token;  // as they were; stale when they differ now

  bool operator<(const Candidate& other) const {  // the queue gives the largest: lowest rank, then leftmost
    return merge.rank != other.merge.rank ? merge.rank > other.merge.rank : left > other.left;
  }
};

}  // namespace

void BytePairs::encode(std::string_view piece, std::vector<std::int32_t>& tokens) const {
  const std::size_t n = piece.size();
  std::vector<std::int32_t> token(n);
  std::vector<std::size_t> previous(n), next(n);  // n: none
  for (std::size_t i = 0; i < n; ++i) {
    token[i] = bytes_[static_cast<unsigned char>(piece[i])];
    previous[i] = i == 0 ? n : i - 1;
    next[i] = i + 1;
  }
  std::priority_queue<Candidate> queue;
  const auto consider = [&](std::size_t left, std::size_t right) {
    if (left >= n || right >= n) return;
    const auto found = merges_.find(key(token[left], token[right]));
    if (found != merges_.end()) queue.push({found->second, left, right, token[left], token[right]});
  };
  for (std::size_t i = 0; i + 1 < n; ++i) consider(i, i + 1);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const bool stale =
        token[best.left] != best.left_token || token[best.right] != best.right_token || next[best.left] != best.right;
    if (stale) continue;
    token[best.left] = best.merge.token;
    token[best.right] = kGone;
    next[best.left] = next[best.right];
    if (next[best.left] < n) previous[next[best.left]] = best.left;
    consider(previous[best.left], best.left);
    consider(best.left, next[best.left]);
  }
  for (const std::int32_t t : token) {
    if (t != kGone) tokens.push_back(t);
  }
}

}  // namespace norma
