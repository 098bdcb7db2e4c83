// What each layer of a model is worth: the loss without it, beside or after its neighbour, and how many layers are
// needed at all. docs/analyses.md defines effective depth.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "norma/lab/estimate.h"
#include "norma/lab/subject.h"

namespace norma {

struct DepthUse {
  std::int64_t layers = 0;          // of the only stack, or of the decoder
  std::vector<double> loss;         // by member
  std::vector<double> loss_hollow;  // by member: without any layer

  // Change of the loss, by layer and member.
  std::vector<std::vector<double>> deletion;           // without layer l
  std::vector<std::vector<double>> swap;               // layers l and l + 1 in the other order; one less
  std::vector<std::vector<double>> width_equivalence;  // layer l + 1 reads what layer l reads; one less

  // The loss with k layers, those whose deletion costs most, for k = 0 to all; by k and member.
  std::vector<std::vector<double>> kept;
  // The least number of layers, by this curve, whose loss exceeds the whole model's by at most kTolerance of what all
  // layers together gain; between two numbers where the curve crosses. One per member, or one per held-out batch where
  // there is only one member.
  std::vector<double> effective_depth;
  static constexpr double kTolerance = 0.1;

  std::vector<std::vector<double>> influence;  // 1 - mean cosine of the stream before and after layer l; by member
  std::vector<std::vector<double>> angular_distance;  // [from][to] over layer borders 0 to all, first member
};

struct DepthUseOptions {
  std::int64_t batches = 4;  // held out; at most as many as there are
  std::function<void(double done)> progress = nullptr;
};

DepthUse measure_depth_use(const Subject& subject, const DepthUseOptions& options = {});

// Where the loss first exceeds `bound`, walking from all layers to none: between k and k + 1 layers, linearly.
double crossing_depth(const std::vector<double>& loss_by_layers, double bound);

}  // namespace norma
