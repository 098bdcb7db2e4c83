// What one row norm has to say about itself, and what its kernels are told; the rest is shared in row.cpp.
#pragma once

#include <array>
#include <cstdint>

#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/norms/row.h"
#include "norms/stores.h"

namespace norma {

constexpr std::int64_t kMaxRowsAtOnce = 2;  // rows that a kernel reads before it writes the first

// Where a kernel finds a scale: one number for all channels has stride 0.
struct RowScale {
  int index = -1;
  std::int64_t stride = 0;
};

// Positions of a forward kernel's arguments in its Call, -1 = absent; see RowNorm.
struct RowForward {
  std::int64_t width = 0;
  std::int64_t counted = 0;  // channels, from the first on, that statistics are taken over
  int terms = 1;
  int gain = -1;
  int bias = -1;
  int mean = -1;
  int sum = -1;
  bool scaled = false;                             // any term
  std::array<RowScale, kMostRowTerms> scale = {};  // by term
  Stores stores = Stores::plain;

  int eps() const { return terms; }
};

// The same for a backward kernel; see RowNormBackward.
struct RowBackward {
  std::int64_t width = 0;
  std::int64_t counted = 0;
  int mean = -1;
  int gain = -1;
  int residual = -1;  // the first
  int residuals = 0;
  int dgain = -1;
  int dbias = -1;
  int scaled = 0;
  int scaled_out = -1;                             // the first
  std::array<RowScale, kMostRowTerms> scale = {};  // by scaled output
  Stores stores = Stores::plain;
};

// Rows [begin, end). The backward form adds the tile's share of dgain [d] or [1] and dbias [d] to zeroed memory.
struct RowNormKernels {
  using Forward = void (*)(const Call&, const RowForward&, std::int64_t begin, std::int64_t end);
  template <typename T>
  using Backward = void (*)(const Call&, const RowBackward&, std::int64_t begin, std::int64_t end, T* dgain, T* dbias);

  Forward forward_f32;
  Forward forward_f64;
  Backward<float> backward_f32;
  Backward<double> backward_f64;
};

enum class Saved { rstd, mean_and_rstd };  // for the backward pass
enum class GainExtent { channels, one };

struct RowNormDefinition {
  std::string_view name;
  Saved saved;
  GainExtent gain;
  // {rstd} or {rstd, mean}, each [.., 1], in elementary ops; `counted` leading channels count.
  Wires (*statistics_of)(Wire x, Wire eps, std::int64_t counted);
  RowNormKernels (*kernels)();  // chosen for this machine
};

constexpr bool centres(const RowNormDefinition& definition) { return definition.saved == Saved::mean_and_rstd; }

// What both directions need to say about themselves.
void check_row_input(const Type& x);
void check_row_scales(std::span<const Type> scales, const Type& x);
Type gain_type(const RowNormDefinition& definition, const Type& x);
std::string attributes_of(const RowNormOptions& options);
// {y, rstd, mean if any} in elementary ops.
Wires normalise(const RowNormDefinition& definition, const RowNormOptions& options, Wire x, Wire eps, Wire gain,
                Wire bias);
Tiling row_tiling(const Shape& shape);
RowScale row_scale(Types in, int index);

// Channels that count towards the statistics: at least one.
std::int64_t counted_channels(const RowNormOptions& options, std::int64_t width);

// Applies the norm; an empty gain or bias is left out.
Wire apply_row_norm(const RowNormDefinition& definition, Wire x, Wire gain, Wire bias, Scalar eps, double fraction = 1);

}  // namespace norma
