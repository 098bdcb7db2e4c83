#include "ops/sum_fusions.h"

#include "norma/graph/graph.h"
#include "norma/ops/column_sums.h"
#include "norma/ops/matmul_slope.h"
#include "norma/ops/reduce.h"
#include "ops/gather.h"

namespace norma {

bool sums_columns(const Rewriter& rewriter, int index) {
  if (rewriter.as<ColumnSums>(index) != nullptr) return true;
  if (rewriter.as<SumTo>(index) == nullptr || !rewriter.node(index).backward) return false;
  const Graph& graph = rewriter.graph();
  const Shape& from = graph.value(rewriter.node(index).inputs[0]).type.shape;
  return graph.value(rewriter.node(index).outputs[0]).type.shape == Shape{from.channels()} && from.rows() > 1;
}

bool gather_column_sums(Rewriter& rewriter, int index) {
  constexpr GatherLimits kLimits{.farthest = 48,               // about two layers
                                 .most = kMostColumnSums / 3,  // norms' join later, two for each
                                 .most_bytes = std::int64_t{64} << 20};
  return gather(rewriter, index, sums_columns, std::make_shared<ColumnSums>(), kLimits);
}

// Where the tensor is large: small ones are gathered, or ride beside gradients of weights.
bool slope_lines(Rewriter& rewriter, int index) {
  constexpr std::int64_t kFewestElements = std::int64_t{4} << 20;
  if (!rewriter.alive(index) || rewriter.as<ColumnSums>(index) != nullptr || !sums_columns(rewriter, index))
    return false;
  const int gradient = rewriter.node(index).inputs[0], at = rewriter.producer(gradient);
  const auto* product = rewriter.as<MatMulSlope>(at);
  if (product == nullptr || product->lines() > 0) return false;
  const Shape shape = rewriter.graph().value(gradient).type.shape;
  if (shape.elements() < kFewestElements) return false;
  const std::int64_t lines = (shape.rows() + kRowsOfSlopeLine - 1) / kRowsOfSlopeLine;
  auto with_lines = std::make_shared<MatMulSlope>(product->activation(), product->product().transpose_b(), lines);
  rewriter.replace(at, {}, std::move(with_lines), rewriter.node(at).inputs, {gradient, -1});
  rewriter.replace(index, {}, std::make_shared<ColumnSums>(), {rewriter.node(at).outputs[1]},
                   rewriter.node(index).outputs);
  return true;
}

}  // namespace norma
