// What all row norms share outside their inner loops: shapes, derivative, reference, tiles.
#include "norms/row.h"

#include <algorithm>
#include <cmath>

#include "norma/core/error.h"
#include "norma/graph/differentiate.h"
#include "norma/graph/sum.h"
#include "norma/ops/elementwise.h"
#include "norms/affine.h"
#include "norms/partials.h"
#include "ops/check.h"

namespace norma {
namespace {

constexpr std::int64_t kTileElements = 8192;  // enough work to be worth handing to a thread

void check_row_input(const Type& x) {
  check_computes(x);
  if (x.shape.rank() == 0) fail("normalises the last axis, but {} has none", x.str());
}

Type gain_type(const RowNormDefinition& definition, const Type& x) {
  return {definition.gain == GainExtent::one ? Shape{1} : Shape{x.shape.channels()}, x.dtype};
}

std::string attributes_of(const RowNormOptions& options) {
  std::string text = fmt::format("affine={}", name_of(options.affine));
  if (options.fraction != 1) text += fmt::format(" fraction={}", options.fraction);
  return text;
}

RowForward forward_layout(const RowNormDefinition& definition, const RowNormOptions& options, int terms) {
  RowForward layout{.terms = terms};
  int in = terms + 1, out = 2;
  if (has_gain(options.affine)) layout.gain = in++;
  if (has_bias(options.affine)) layout.bias = in++;
  if (centres(definition)) layout.mean = out++;
  if (terms > 1) layout.sum = out++;
  return layout;
}

RowBackward backward_layout(const RowNormDefinition& definition, const RowNormOptions& options, int residuals) {
  RowBackward layout{.residuals = residuals};
  int in = 4, out = 1;
  if (centres(definition)) layout.mean = in++;
  if (has_gain(options.affine)) layout.gain = in++;
  layout.residual = in;
  if (has_gain(options.affine)) layout.dgain = out++;
  if (has_bias(options.affine)) layout.dbias = out++;
  return layout;
}

// {y, rstd, mean if any}
Wires normalise(const RowNormDefinition& definition, const RowNormOptions& options, Wire x, Wire eps, Wire gain,
                Wire bias) {
  Wires result = definition.statistics_of(x, eps, counted_channels(options, x.shape().channels()));
  Wire y = (centres(definition) ? x - result[1] : x) * result[0];
  if (gain) y = y * gain;
  if (bias) y = y + bias;
  result.insert(result.begin(), y);
  return result;
}

}  // namespace

std::string_view name_of(Affine affine) {
  switch (affine) {
    case Affine::none: return "none";
    case Affine::gain: return "gain";
    case Affine::bias: return "bias";
    case Affine::gain_and_bias: return "gain_and_bias";
  }
  return "affine";
}

std::int64_t counted_channels(const RowNormOptions& options, std::int64_t width) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(options.fraction * static_cast<double>(width)));
}

RowNorm::RowNorm(const RowNormDefinition& definition, RowNormOptions options, int terms)
    : definition_(definition),
      options_(options),
      terms_(terms),
      name_((terms > 1 ? "add_" : "") + std::string(definition.name)) {}

std::string RowNorm::attributes() const {
  return attributes_of(options_) + (terms_ > 1 ? fmt::format(" terms={}", terms_) : "");
}

std::vector<Type> RowNorm::infer(std::span<const Type> in) const {
  const RowForward layout = forward_layout(definition_, options_, terms_);
  check_count(in.size(), static_cast<std::size_t>(terms_ + 1 + has_gain(options_.affine) + has_bias(options_.affine)));
  const Type& x = in[0];
  check_row_input(x);
  for (int k = 1; k < terms_; ++k) check_type("every term", in[static_cast<std::size_t>(k)], x);
  check_type("eps", in[static_cast<std::size_t>(layout.eps())], {{1}, x.dtype});
  if (layout.gain >= 0) check_type("gain", in[static_cast<std::size_t>(layout.gain)], gain_type(definition_, x));
  if (layout.bias >= 0) check_type("bias", in[static_cast<std::size_t>(layout.bias)], {{x.shape.channels()}, x.dtype});
  const Type statistic{x.shape.with(-1, 1), x.dtype};
  std::vector<Type> out = {x, statistic};
  if (layout.mean >= 0) out.push_back(statistic);
  if (layout.sum >= 0) out.push_back(x);
  return out;
}

Wires RowNorm::vjp(const VjpContext& context) const {
  const RowForward layout = forward_layout(definition_, options_, terms_);
  const std::size_t terms = static_cast<std::size_t>(terms_);
  const auto dout = [&](int out) { return out < 0 ? Wire() : context.dout[static_cast<std::size_t>(out)]; };
  // The saved statistics are for our own backward; whoever else differentiates through them, or by eps, gets the
  // derivative of the reference.
  if (dout(1) || dout(layout.mean) || context.needed[terms]) return Op::vjp(context);
  const Wire dy = dout(0), dsum = dout(layout.sum);
  Wires result(context.in.size());
  if (!dy) {
    for (std::size_t k = 0; k < terms; ++k) result[k] = dsum;
    return result;
  }
  const Wire x = layout.sum < 0 ? context.in[0] : context.out[static_cast<std::size_t>(layout.sum)];
  Wires in = {x, dy, context.in[terms], context.out[1]};
  if (layout.mean >= 0) in.push_back(context.out[static_cast<std::size_t>(layout.mean)]);
  if (layout.gain >= 0) in.push_back(context.in[static_cast<std::size_t>(layout.gain)]);
  if (dsum) in.push_back(dsum);
  const Wires gradients =
      context.graph().apply(std::make_shared<RowNormBackward>(definition_, options_, dsum ? 1 : 0), in);
  for (std::size_t k = 0; k < terms; ++k) result[k] = gradients[0];
  for (std::size_t k = 1; k < gradients.size(); ++k) result[terms + k] = gradients[k];
  return result;
}

Wires RowNorm::reference(std::span<const Wire> in) const {
  const RowForward layout = forward_layout(definition_, options_, terms_);
  const auto optional = [&](int index) { return index < 0 ? Wire() : in[static_cast<std::size_t>(index)]; };
  const std::size_t terms = static_cast<std::size_t>(terms_);
  const Wire x = sum(in.first(terms));
  Wires out = normalise(definition_, options_, x, in[terms], optional(layout.gain), optional(layout.bias));
  if (terms_ > 1) out.push_back(x);
  return out;
}

Cost RowNorm::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = static_cast<double>(in[0].shape.elements()) * (7 + terms_), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const RowNorm& op, Types in, Types out) {
  RowForward layout = forward_layout(op.definition(), op.options(), op.terms());
  layout.width = in[0].shape.channels();
  layout.counted = counted_channels(op.options(), layout.width);
  layout.stores = choose_stores(out[0]);
  const RowNormKernels kernels = op.definition().kernels();
  const auto run = in[0].dtype == DType::f32 ? kernels.forward_f32 : kernels.forward_f64;
  const Tiling tiling(in[0].shape.rows(), std::max<std::int64_t>(1, kTileElements / layout.width));
  const std::int64_t row_bytes = layout.width * static_cast<std::int64_t>(size_of(in[0].dtype));
  return {
      .phases = {{tiling.tiles, [=](const Call& call,
                                    std::int64_t tile) { run(call, layout, tiling.begin(tile), tiling.end(tile)); }}},
      .worker_bytes = op.terms() > 1 ? row_bytes * kMaxRowsAtOnce : 0};
}

bool RowNorm::can_overwrite(int out, int in) const {
  const RowForward layout = forward_layout(definition_, options_, terms_);
  return in < terms_ && (out == 0 || out == layout.sum);
}

RowNormBackward::RowNormBackward(const RowNormDefinition& definition, RowNormOptions options, int residuals)
    : definition_(definition),
      options_(options),
      residuals_(residuals),
      name_(std::string(definition.name) + (residuals > 0 ? "_backward_add" : "_backward")) {}

std::string RowNormBackward::attributes() const {
  return attributes_of(options_) + (residuals_ > 0 ? fmt::format(" residuals={}", residuals_) : "");
}

std::vector<Type> RowNormBackward::infer(std::span<const Type> in) const {
  const RowBackward layout = backward_layout(definition_, options_, residuals_);
  check_count(in.size(), static_cast<std::size_t>(layout.residual + residuals_));
  const Type& x = in[0];
  check_row_input(x);
  const Type statistic{x.shape.with(-1, 1), x.dtype};
  check_type("dy", in[1], x);
  check_type("eps", in[2], {{1}, x.dtype});
  check_type("rstd", in[3], statistic);
  if (layout.mean >= 0) check_type("mean", in[static_cast<std::size_t>(layout.mean)], statistic);
  if (layout.gain >= 0) check_type("gain", in[static_cast<std::size_t>(layout.gain)], gain_type(definition_, x));
  for (int k = 0; k < residuals_; ++k) {
    check_type("every residual gradient", in[static_cast<std::size_t>(layout.residual + k)], x);
  }
  std::vector<Type> out = {x};
  if (layout.dgain >= 0) out.push_back(gain_type(definition_, x));
  if (layout.dbias >= 0) out.push_back({{x.shape.channels()}, x.dtype});
  return out;
}

// The derivative of the forward reference, statistics included: rstd and mean are recomputed from x, so that second
// derivatives see everything that depends on it.
Wires RowNormBackward::reference(std::span<const Wire> in) const {
  const RowBackward layout = backward_layout(definition_, options_, residuals_);
  const Wire x = in[0], dy = in[1];
  Graph& graph = x.graph();
  const Wire gain = layout.gain < 0 ? Wire() : in[static_cast<std::size_t>(layout.gain)];
  const Wire bias = layout.dbias < 0 ? Wire() : graph.fill({{x.shape().channels()}, x.dtype()}, 0);
  const Wires out = {normalise(definition_, options_, x, in[2], gain, bias)[0]};
  const Wires dout = {dy};
  Wires wrt = {x};
  if (gain) wrt.push_back(gain);
  if (bias) wrt.push_back(bias);
  Wires result = pull_back(out, dout, wrt);
  Wires parts = {result[0]};
  for (const Wire& residual : in.subspan(static_cast<std::size_t>(layout.residual))) parts.push_back(residual);
  result[0] = sum(parts);
  return result;
}

Cost RowNormBackward::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = static_cast<double>(in[0].shape.elements()) * (14 + residuals_), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const RowNormBackward& op, Types in, Types out) {
  RowBackward layout = backward_layout(op.definition(), op.options(), op.residuals());
  layout.width = in[0].shape.channels();
  layout.counted = counted_channels(op.options(), layout.width);
  // The channels that do not count are stored by themselves: streaming needs them to begin with a whole vector.
  const Shape counted = in[0].shape.with(-1, layout.counted);
  layout.stores = streams_rows({counted, in[0].dtype}) ? choose_stores(out[0]) : Stores::plain;
  const RowNormKernels kernels = op.definition().kernels();
  const auto build = [&]<typename T>(RowNormKernels::Backward<T> run) {
    const Tiling tiling(in[0].shape.rows(), std::max<std::int64_t>(1, kTileElements / layout.width));
    CpuKernel kernel;
    const std::int64_t gains = op.definition().gain == GainExtent::one ? 1 : layout.width;
    const Partials<T> dgain(kernel, layout.dgain < 0 ? 0 : gains, tiling.tiles);
    const Partials<T> dbias(kernel, layout.dbias < 0 ? 0 : layout.width, tiling.tiles);
    const auto line = [](const Call& call, const Partials<T>& partials, int output, std::int64_t tile) -> T* {
      if (output < 0 || call.out<T>(output) == nullptr) return nullptr;
      return std::fill_n(partials.line(call, tile), partials.width, T{0}) - partials.width;
    };
    kernel.phases.push_back({tiling.tiles, [=](const Call& call, std::int64_t tile) {
                               run(call, layout, tiling.begin(tile), tiling.end(tile),
                                   line(call, dgain, layout.dgain, tile), line(call, dbias, layout.dbias, tile));
                             }});
    if (layout.dgain >= 0) add_total_phase(kernel, dgain, layout.dgain);
    if (layout.dbias >= 0) add_total_phase(kernel, dbias, layout.dbias);
    return kernel;
  };
  return in[0].dtype == DType::f32 ? build(kernels.backward_f32) : build(kernels.backward_f64);
}

bool RowNormBackward::can_overwrite(int out, int in) const {
  const RowBackward layout = backward_layout(definition_, options_, residuals_);
  return out == 0 && (in < 2 || in >= layout.residual);
}

Wire apply_row_norm(const RowNormDefinition& definition, Wire x, Wire gain, Wire bias, Scalar eps, double fraction) {
  Wires in = {x, eps.beside(x)};
  const Affine affine = append_affine(in, gain, bias);
  const RowNormOptions options{.affine = affine, .fraction = fraction};
  return x.graph().apply(std::make_shared<RowNorm>(definition, options), in)[0];
}

}  // namespace norma
