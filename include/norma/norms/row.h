// Norms whose statistics are taken along the last axis, one row at a time, and their fusions with the residual add.
// xh = (x - mean) rstd, y = gain xh + bias; the norms differ in what mean and rstd are.
#pragma once

#include "norma/graph/op.h"
#include "norma/norms/scalar.h"

namespace norma {

struct RowNormDefinition;  // of one norm: statistics, reference, kernels; see src/norms/row.h

// Which of the affine parameters a norm is applied with.
enum class Affine { none, gain, bias, gain_and_bias };

constexpr bool has_gain(Affine affine) { return affine == Affine::gain || affine == Affine::gain_and_bias; }
constexpr bool has_bias(Affine affine) { return affine == Affine::bias || affine == Affine::gain_and_bias; }
std::string_view name_of(Affine affine);

struct RowNormOptions {
  Affine affine = Affine::gain_and_bias;
  double fraction = 1;  // of the channels, from the first on, that statistics are taken over
  bool relu = false;    // behind the norm: y = relu(gain xh + bias); forward only, made by a rewrite
};

constexpr int kMostRowTerms = 8;  // of a sum before a norm, or of gradients after one

// in:  x1, ..., x_terms [.., d], eps [1], gain [d] or [1] if any, bias [d] if any, the scales of scaled terms in order
// out: y [.., d], rstd [.., 1], mean [.., 1] if the norm centres, s1 x1 + ... + s_terms x_terms [.., d] if terms > 1
//      and y again in the other width, if `twin`
// A scale is one number [1] or one for every channel [d]; only the terms of a sum have them.
class RowNorm final : public Op {
 public:
  // Bit k of `scaled`: term k has a scale.
  RowNorm(const RowNormDefinition& definition, RowNormOptions options, int terms = 1, unsigned scaled = 0,
          bool twin = false);

  const RowNormDefinition& definition() const { return definition_; }
  const RowNormOptions& options() const { return options_; }
  int terms() const { return terms_; }
  unsigned scaled() const { return scaled_; }
  bool scales(int term) const { return (scaled_ >> term & 1u) != 0; }
  bool twin() const { return twin_; }

  std::string_view name() const override { return name_; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int in) const override { return in > 0 && in < terms_; }
  void choose(Widths& widths) const override;
  OpPtr with_twin() const override;
  bool optional_output(int out) const override { return out > 0 || twin_; }
  bool can_overwrite(int out, int in) const override;

 private:
  const RowNormDefinition& definition_;
  RowNormOptions options_;
  int terms_;
  unsigned scaled_;
  bool twin_;
  std::string name_;
};

enum class TotalSums { none, lines };

// Gradients of a row norm, plus gradients that reach its input another way (the residual stream), and their sum as the
// scaled terms of what was normalised see it.
// in:  x [.., d], dy [.., d], eps [1], rstd [.., 1], mean [.., 1] if any, gain if any, residuals [.., d]...,
//      scales [1] or [d]...
// out: total = dx + residuals [.., d], dgain if any, dbias if any, scale total [.., d] for every scale, and total again
//      in the other width, if `twin`
// With `lines`, dgain and dbias are [lines, d] each: partial sums in any division, zero where there are fewer. A device
// leaves adding them up to whoever adds up more at the same time (the rewrite norm_lines). The same sums of the total,
// which is the gradient by a bias of what was added to the stream there, may follow them: [lines, d].
class RowNormBackward final : public Op {
 public:
  RowNormBackward(const RowNormDefinition& definition, RowNormOptions options, int residuals = 0, int scaled = 0,
                  bool twin = false, std::int64_t lines = 0, TotalSums totals = TotalSums::none);

  const RowNormDefinition& definition() const { return definition_; }
  const RowNormOptions& options() const { return options_; }
  int residuals() const { return residuals_; }
  int scaled() const { return scaled_; }
  bool twin() const { return twin_; }
  std::int64_t lines() const { return lines_; }
  TotalSums totals() const { return totals_; }
  std::shared_ptr<const RowNormBackward> with_lines(std::int64_t lines, TotalSums totals = TotalSums::none) const;

  std::string_view name() const override { return name_; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int in) const override { return in == 1; }
  void choose(Widths& widths) const override;
  OpPtr with_twin() const override;
  // Scaled totals are made from the total.
  bool optional_output(int out) const override { return out > 0 || scaled_ == 0; }
  bool can_overwrite(int out, int in) const override;

 private:
  const RowNormDefinition& definition_;
  RowNormOptions options_;
  int residuals_;
  int scaled_;
  bool twin_;
  std::int64_t lines_;
  TotalSums totals_;
  std::string name_;
};

// y = gain (x - mean) / sqrt(var + eps) + bias. An empty gain or bias is left out.
Wire layer_norm(Wire x, Wire gain, Wire bias, Scalar eps = 1e-5);

// y = gain x / sqrt(mean(x^2) + eps)
Wire rms_norm(Wire x, Wire gain, Scalar eps = 1e-6);

// RMSNorm whose mean square is taken over the first `fraction` of the channels (at least one).
Wire prms_norm(Wire x, Wire gain, double fraction = 0.0625, Scalar eps = 1e-6);

// y = g0 x / max(||x||, eps), g0 [1]
Wire scale_norm(Wire x, Wire g0, Scalar eps = 1e-5);

}  // namespace norma
