#include "ops/gather.h"

#include <algorithm>
#include <array>

namespace norma {

bool gather(Rewriter& rewriter, int index, bool (*belongs)(const Rewriter& rewriter, int index), OpPtr op,
            const GatherLimits& limits) {
  if (!rewriter.alive(index) || !belongs(rewriter, index)) return false;
  const std::vector<int> own = rewriter.node(index).inputs, made = rewriter.node(index).outputs;
  for (int next = index + 1; next < std::min(rewriter.size(), index + limits.farthest); ++next) {
    if (!rewriter.alive(next) || !belongs(rewriter, next)) continue;
    std::vector<int> inputs = own, outputs = made;
    const Node& other = rewriter.node(next);
    inputs.insert(inputs.end(), other.inputs.begin(), other.inputs.end());
    outputs.insert(outputs.end(), other.outputs.begin(), other.outputs.end());
    std::int64_t bytes = 0;
    for (const int id : inputs) bytes += rewriter.graph().value(id).type.bytes();
    if (inputs.size() > limits.most || bytes > limits.most_bytes) return false;
    if (!rewriter.unread_before(made, next, index)) return false;
    rewriter.replace(next, std::array{index}, std::move(op), std::move(inputs), std::move(outputs));
    return true;
  }
  return false;
}

}  // namespace norma
