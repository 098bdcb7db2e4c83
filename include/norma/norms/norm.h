// The catalogue of norms: what each is called, what it learns, and how to apply it by name.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "norma/graph/graph.h"
#include "norma/norms/channel.h"
#include "norma/norms/dyt.h"
#include "norma/norms/graph.h"
#include "norma/norms/row.h"

namespace norma {

enum class NormKind { layer, weightless, rms, prms, scale, dyt, batch, instance, group, sample, graph, pair, mean };

// A tensor that a norm carries: a learned parameter, or a running statistic.
struct NormTensor {
  enum class Extent { channels, one };
  enum class Start { constant, sqrt_width };

  std::string_view name;  // "gain"
  Extent extent = Extent::channels;
  double initial = 1;
  Start start = Start::constant;

  Shape shape(std::int64_t width) const { return extent == Extent::one ? Shape{1} : Shape{width}; }
  double initial_value(std::int64_t width) const;
};

// What must be finite for a position to be finite: how far a NaN spreads.
enum class NormReach { element, row, sample_group, batch_channel, batch };

struct NormInfo {
  NormKind kind;
  std::string_view name;     // "rms"
  std::string_view title;    // "RMSNorm"
  std::string_view formula;  // "y = gain x / sqrt(mean(x^2) + eps)"
  std::string_view source;   // "Zhang, Sennrich 2019, arXiv 1910.07467"
  NormReach reach;
  double eps;                          // customary; 0 where there is none
  std::vector<NormTensor> parameters;  // learned
  std::vector<NormTensor> states;      // updated by the norm itself in training
};

std::span<const NormInfo> norms();
const NormInfo& norm(NormKind kind);
const NormInfo& norm(std::string_view name);  // throws Error naming the nearest known one
std::string_view name_of(NormKind kind);

// The tensors of one norm in a graph; those it does not have stay empty.
struct NormWires {
  Wire gain, bias, alpha, g0;
  RunningStatistics running = {};

  Wire& at(std::string_view name);  // "gain", ..., "running_mean", "running_variance"
};

// Declares the norm's parameters and states in the open scope, under their names.
NormWires declare_norm(Graph& graph, const NormInfo& info, std::int64_t width, DType dtype = DType::f32);

// Only norms with running statistics know the difference.
enum class NormMode { train, evaluate };

struct NormSettings {
  Wire eps = {};               // [1]; empty: the customary one
  double fraction = 0.0625;    // pRMSNorm
  std::int64_t groups = 32;    // GroupNorm
  NodeSegments segments = {};  // norms over nodes: of which graph a row is
  Scalar momentum = 0.1;       // weight of the new value in running statistics
  NormMode mode = NormMode::train;
};

Wire apply_norm(const NormInfo& info, Wire x, const NormWires& wires, const NormSettings& settings = {});

}  // namespace norma
