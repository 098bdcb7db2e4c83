// Gradients of biases that a launch for gradients by weights can make on its way, since it reads the same tensor.
#include <algorithm>

#include "norma/ops/column_sums.h"
#include "norma/ops/fusions.h"
#include "norma/ops/weight_gradients.h"

namespace norma {
namespace {

constexpr int kFarthestLaunch = 96;  // nodes: some layers

// The pair of a launch whose second factor is `gradient` and that has no bias yet; -1 = none.
int pair_without_bias(const Rewriter& rewriter, int launch, int gradient) {
  const std::vector<bool>& biases = rewriter.as<WeightGradients>(launch)->has_bias();
  for (std::size_t pair = 0; pair < biases.size(); ++pair) {
    if (!biases[pair] && rewriter.node(launch).inputs[2 * pair + 1] == gradient) return static_cast<int>(pair);
  }
  return -1;
}

// Makes `sum` there, the bias of a pair.
void add_bias(Rewriter& rewriter, int launch, int pair, int sum) {
  std::vector<bool> biases = rewriter.as<WeightGradients>(launch)->has_bias();
  std::vector<int> outputs = rewriter.node(launch).outputs;
  const auto before = std::count(biases.begin(), biases.begin() + pair, true);
  outputs.insert(outputs.begin() + static_cast<std::ptrdiff_t>(biases.size()) + before, sum);
  biases[static_cast<std::size_t>(pair)] = true;
  rewriter.replace(launch, {}, std::make_shared<WeightGradients>(std::move(biases)), rewriter.node(launch).inputs,
                   std::move(outputs));
}

// One of several sums over rows -> to the gradients by weights that read the same tensor. The op stays with one sum at
// least: partial sums of norms come to it.
bool bias_beside_weight(Rewriter& rewriter, int index) {
  if (rewriter.as<ColumnSums>(index) == nullptr || rewriter.node(index).inputs.size() < 2) return false;
  std::vector<int> inputs = rewriter.node(index).inputs, sums = rewriter.node(index).outputs;
  for (int at = std::max(0, index - kFarthestLaunch); at < std::min(rewriter.size(), index + kFarthestLaunch); ++at) {
    if (rewriter.as<WeightGradients>(at) == nullptr) continue;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const int pair = pair_without_bias(rewriter, at, inputs[k]), sum = sums[k];
      if (pair < 0 || !rewriter.unread_before({&sum, 1}, at, index)) continue;
      inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(k));
      sums.erase(sums.begin() + static_cast<std::ptrdiff_t>(k));
      rewriter.replace(index, {}, std::make_shared<ColumnSums>(), inputs, sums);
      add_bias(rewriter, at, pair, sum);
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<Rewrite> bias_fusions() { return {{"bias_beside_weight", bias_beside_weight}}; }

}  // namespace norma
