// Norms whose statistics are taken over positions: batch, instance and group norm, channels last.
// xh = (x - mean) rstd, y = gain xh + bias, with gain and bias per channel.
#pragma once

#include "norma/norms/row.h"

namespace norma {

// What statistics are taken over.
enum class Region {
  batch,    // all rows, for each channel: x [.., C], statistics [C]
  sample,   // one sample's positions, for each group of channels: x [B, .., C], statistics [B, groups]
  running,  // nothing: they are given, and constant
};

std::string_view name_of(Region region);

struct ChannelNormOptions {
  std::string_view name = "group_norm";  // of the op; must outlive it
  Region region = Region::sample;
  std::int64_t groups = 0;  // of channels; 0: every channel is its own group
  Affine affine = Affine::gain_and_bias;
  // What fusions put behind the norm; devices without kernels for that have no such fusions.
  bool adds = false;  // a further term
  bool relu = false;
};

// in:  x, eps [1], running mean [C] and variance [C] if the region is running, gain [C] if any, bias [C] if any, and
//      what is added to y, if anything
// out: y, rstd, and unless the region is running: mean, variance (biased)
class ChannelNorm final : public Op {
 public:
  explicit ChannelNorm(ChannelNormOptions options) : options_(options) {}
  const ChannelNormOptions& options() const { return options_; }

  std::string_view name() const override { return options_.name; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool optional_output(int out) const override { return out > 0; }
  bool wants_narrow(int in) const override { return in == 0; }
  void choose(Widths& widths) const override;
  bool can_overwrite(int out, int in) const override { return out == 0 && in == 0; }

 private:
  ChannelNormOptions options_;
};

// in:  x, dy, eps [1], rstd, mean, gain [C] if any, and if the norm has a relu, bias [C] if any. relu is applied again.
// out: dx, dgain [C] if any, dbias [C] if any
class ChannelNormBackward final : public Op {
 public:
  explicit ChannelNormBackward(ChannelNormOptions options);

  const ChannelNormOptions& options() const { return options_; }
  std::string_view name() const override { return name_; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool optional_output(int) const override { return true; }
  bool wants_narrow(int in) const override { return in < 2; }
  void choose(Widths& widths) const override;
  bool can_overwrite(int out, int in) const override { return out == 0 && in < 2; }

 private:
  ChannelNormOptions options_;
  std::string name_;
};

// run <- (1 - momentum) run + momentum batch; the variance that is kept is the unbiased one. What is not finite in a
// batch leaves the running value as it was: a step whose loss is not finite changes no weight either.
// in: running mean [C], running variance [C], mean [C], variance [C] (biased), momentum [1]; out: the first two,
// updated
class RunningUpdate final : public Op {
 public:
  explicit RunningUpdate(std::int64_t rows) : rows_(rows) {}
  std::int64_t rows() const { return rows_; }
  std::string_view name() const override { return "running_update"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override { return Wires(context.in.size()); }
  std::vector<Update> updates() const override { return {{0, 0}, {1, 1}}; }

 private:
  std::int64_t rows_;  // that the statistics were taken over
};

struct RunningStatistics {
  Wire mean;      // [C] state, starts at 0
  Wire variance;  // [C] state, starts at 1
};

// Training: statistics of this batch; the running ones are updated when they are given.
Wire batch_norm(Wire x, Wire gain, Wire bias, RunningStatistics running = {}, Scalar eps = 1e-5, Scalar momentum = 0.1);
// Evaluation: the running statistics, as constants.
Wire batch_norm_eval(Wire x, Wire gain, Wire bias, RunningStatistics running, Scalar eps = 1e-5);
Wire instance_norm(Wire x, Wire gain, Wire bias, Scalar eps = 1e-5);
Wire group_norm(Wire x, std::int64_t groups, Wire gain, Wire bias, Scalar eps = 1e-5);

}  // namespace norma
