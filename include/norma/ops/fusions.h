// The named rewrites over ops: matmul_add, scaled_add, linear_activation, linear_cross_entropy; others by device.
#pragma once

#include <optional>
#include <vector>

#include "norma/graph/rewrite.h"

namespace norma {

std::vector<Rewrite> op_fusions();
// For devices whose sums over neighbours take a bias and an activation: neighbour_bias, neighbour_activation.
std::vector<Rewrite> neighbour_fusions();
// For devices that make a loss and its gradients in one op, loss_gradient, read attention's context rather than compute
// it again, attention_context, apply an activation's derivative to a product, product_slope, and sum over the rows of
// several tensors in one launch, column_sums, or make gradients by weights and biases in one,
// weight_and_bias and weight_gradients.
std::vector<Rewrite> gradient_fusions();
// After those, and after others have joined sums over rows: bias_beside_weight.
std::vector<Rewrite> bias_fusions();
// For devices that make a hidden layer again where the gradient passes it: linear_slope.
std::vector<Rewrite> lean_fusions();
// For devices whose embeddings add positions, and whose gradients of a table are added to others: embedding_positions,
// tied_table.
std::vector<Rewrite> embedding_fusions();
// For devices that probe several tensors in one launch: statistics.
std::vector<Rewrite> probe_fusions();

// A product with one number or one vector over channels: its node, and the values that it multiplies.
struct ScaledValue {
  int node, value, scale;
};
// How `value` was made, if it is such a product.
std::optional<ScaledValue> find_scaled(const Rewriter& rewriter, int value);

}  // namespace norma
