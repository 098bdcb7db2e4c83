// What each layer of a model is worth: the loss without it, beside or after its neighbour, and how many layers are
// needed at all. docs/analyses.md defines effective depth.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "norma/lab/estimate.h"
#include "norma/lab/subject.h"

namespace norma {

struct DepthUse {
  std::int64_t layers = 0;          // of the stacks through which one stream goes to the output
  std::vector<double> loss;         // by member
  std::vector<double> loss_hollow;  // by member: without any layer

  // Change of the loss, by layer and member.
  std::vector<std::vector<double>> deletion;           // without layer l
  std::vector<std::vector<double>> swap;               // layers l and l + 1 in the other order; one less
  std::vector<std::vector<double>> width_equivalence;  // layer l + 1 reads what layer l reads; one less

  // The loss with k layers, those whose deletion costs most, for k = 0 to all; by k and member.
  std::vector<std::vector<double>> kept;
  // The least number of layers, by this curve, that keep all but kTolerance of what the model has learned beyond
  // guessing by frequency; between two numbers where the curve crosses. Over members, or over held-out batches where
  // there is only one. 0 for a model that has learned nothing.
  Estimate effective_depth;
  bool learned = true;  // some member knows more than frequencies
  static constexpr double kTolerance = 0.1;

  // Layers that change the shape of the stream can be left out, but not moved, and none moves to another stack: `swap`
  // and `width_equivalence` have NaN there, or are empty where no two neighbours keep one shape; so has
  // angular_distance between streams of two shapes. The influence of such a layer is that on what it keeps of the
  // stream, its projection.
  bool shape_changes = false;
  std::vector<std::vector<double>> influence;  // 1 - mean cosine of the stream before and after layer l; by member
  std::vector<std::vector<double>> angular_distance;  // [from][to] over layer borders 0 to all, first member
};

struct DepthUseOptions {
  std::int64_t batches = 4;  // held out; at most as many as there are
  std::function<void(double done)> progress = nullptr;
};

DepthUse measure_depth_use(const Subject& subject, const DepthUseOptions& options = {});

// Where the loss first comes down to `bound`, walking from no layer to all: between k and k + 1 layers, linearly. All
// layers where it never does.
double crossing_depth(const std::vector<double>& loss_by_layers, double bound);

// Losses with 0, 1, ... layers; nothing where that is no more than guessing, which loses `guessing`. Where guessing has
// no loss (infinite), the model without layers stands for it.
std::optional<double> effective_depth(const std::vector<double>& loss_by_layers, double guessing);

// Of one model, with the losses of every batch [layers kept][batch] and of guessing on it: the interval is over
// batches, by the jackknife.
Estimate effective_depth_over_batches(const std::vector<std::vector<double>>& losses,
                                      const std::vector<double>& guessing);

}  // namespace norma
