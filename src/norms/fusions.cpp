#include "norma/norms/fusions.h"

#include "norma/graph/sum.h"
#include "norma/norms/row.h"

namespace norma {
namespace {

constexpr int kMostTerms = 8;  // more would not fit in a kernel call with everything else

// Node `index` is a norm of a sum. The fused node takes the place of the sum, if the norm's parameters are known there,
// else that of the norm, if nobody reads the sum before.
bool add_norm(Rewriter& rewriter, int index) {
  const RowNorm* const norm = rewriter.as<RowNorm>(index);
  if (norm == nullptr || norm->terms() != 1) return false;
  const Node& node = rewriter.node(index);
  const int sum_value = node.inputs[0], sum_node = rewriter.producer(sum_value);
  if (rewriter.as<Sum>(sum_node) == nullptr) return false;
  std::vector<int> inputs = rewriter.node(sum_node).inputs;
  const int terms = static_cast<int>(inputs.size());
  if (terms > kMostTerms) return false;
  const std::span<const int> parameters = std::span(node.inputs).subspan(1);
  const int moved[] = {sum_value};
  const bool early = rewriter.available_before(parameters, sum_node);
  if (!early && !rewriter.unread_before(moved, index, index)) return false;
  inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  std::vector<int> outputs = node.outputs;
  outputs.push_back(sum_value);
  const int others[] = {early ? index : sum_node};
  rewriter.replace(early ? sum_node : index, others,
                   std::make_shared<RowNorm>(norm->definition(), norm->options(), terms), std::move(inputs),
                   std::move(outputs));
  return true;
}

// Node `index` is a sum, one of whose terms is the gradient through a norm and read by nobody else. The fused node
// takes the place of the norm's backward, if the other terms are known there, else that of the sum, if nobody reads the
// gradients by gain and bias before.
bool norm_backward_add(Rewriter& rewriter, int index) {
  if (rewriter.as<Sum>(index) == nullptr) return false;
  const std::vector<int> terms = rewriter.node(index).inputs;
  for (const int dx : terms) {
    const int producer = rewriter.producer(dx);
    const RowNormBackward* const backward = rewriter.as<RowNormBackward>(producer);
    if (backward == nullptr || rewriter.node(producer).outputs[0] != dx || !rewriter.private_to(dx, index)) continue;
    std::vector<int> rest = terms;
    std::erase(rest, dx);
    const int residuals = backward->residuals() + static_cast<int>(rest.size());
    if (residuals > kMostTerms) continue;
    const std::vector<int> old_outputs = rewriter.node(producer).outputs;
    const bool early = rewriter.available_before(rest, producer);
    if (!early && !rewriter.unread_before(std::span(old_outputs).subspan(1), index, index)) continue;
    std::vector<int> inputs = rewriter.node(producer).inputs;
    inputs.insert(inputs.end(), rest.begin(), rest.end());
    std::vector<int> outputs = old_outputs;
    outputs[0] = rewriter.node(index).outputs[0];
    const int others[] = {early ? index : producer};
    rewriter.replace(early ? producer : index, others,
                     std::make_shared<RowNormBackward>(backward->definition(), backward->options(), residuals),
                     std::move(inputs), std::move(outputs));
    return true;
  }
  return false;
}

}  // namespace

std::vector<Rewrite> norm_fusions() { return {{"add_norm", add_norm}, {"norm_backward_add", norm_backward_add}}; }

}  // namespace norma
