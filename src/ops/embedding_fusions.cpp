// What stands beside an embedding joins it.
#include <array>

#include "norma/graph/sum.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/fusions.h"

namespace norma {
namespace {

// Rows of a table + one position for each time step -> one op.
bool embedding_positions(Rewriter& rewriter, int index) {
  const auto* add = rewriter.as<BinaryOp>(index);
  if (add == nullptr || add->function() != Binary::add) return false;
  const std::vector<int> terms = rewriter.node(index).inputs, out = rewriter.node(index).outputs;
  const int at = rewriter.producer(terms[0]);
  if (rewriter.as<Embedding>(at) == nullptr || !rewriter.private_to(terms[0], index)) return false;
  std::vector<int> inputs = rewriter.node(at).inputs;
  const Type &rows = rewriter.graph().value(terms[0]).type, &positions = rewriter.graph().value(terms[1]).type;
  if (inputs.size() != 2 || rows.shape.rank() < 3 ||
      positions != Type{{rows.shape[-2], rows.shape.channels()}, rows.dtype})
    return false;
  inputs.push_back(terms[1]);
  rewriter.replace(index, std::array{at}, std::make_shared<Embedding>(), std::move(inputs), out);
  return true;
}

// The gradient of a table that is used twice: its rows are added to what the other use gives.
bool tied_table(Rewriter& rewriter, int index) {
  if (rewriter.as<Sum>(index) == nullptr || rewriter.node(index).inputs.size() != 2) return false;
  const std::vector<int> terms = rewriter.node(index).inputs, out = rewriter.node(index).outputs;
  for (std::size_t k = 0; k < 2; ++k) {
    const int at = rewriter.producer(terms[k]);
    const auto* backward = rewriter.as<EmbeddingBackward>(at);
    if (backward == nullptr || !rewriter.private_to(terms[k], index)) continue;
    std::vector<int> inputs = rewriter.node(at).inputs;
    if (inputs.size() != 2) continue;
    inputs.push_back(terms[1 - k]);
    rewriter.replace(index, std::array{at}, std::make_shared<EmbeddingBackward>(backward->vocabulary()),
                     std::move(inputs), out);
    return true;
  }
  return false;
}

}  // namespace

std::vector<Rewrite> embedding_fusions() {
  return {{"embedding_positions", embedding_positions}, {"tied_table", tied_table}};
}

}  // namespace norma
