// What all row norms share outside their inner loops: shapes, derivative, reference, tiles. Backward is in
// row_backward.cpp.
#include "norms/row.h"

#include <algorithm>
#include <bit>

#include "norma/core/error.h"
#include "norma/graph/sum.h"
#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"
#include "norms/affine.h"
#include "ops/check.h"

namespace norma {
namespace {

RowForward forward_layout(const RowNorm& op) {
  RowForward layout{.terms = op.terms(), .scaled = op.scaled() != 0};
  int in = op.terms() + 1, out = 2;
  if (has_gain(op.options().affine)) layout.gain = in++;
  if (has_bias(op.options().affine)) layout.bias = in++;
  for (int k = 0; k < op.terms(); ++k) {
    if (op.scales(k)) layout.scale[static_cast<std::size_t>(k)].index = in++;
  }
  if (centres(op.definition())) layout.mean = out++;
  if (op.terms() > 1) layout.sum = out++;
  return layout;
}

int affine_inputs(const RowNormOptions& options) {
  return (has_gain(options.affine) ? 1 : 0) + (has_bias(options.affine) ? 1 : 0);
}

}  // namespace

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
  if (options.relu) text += " relu";
  return text;
}

void check_row_scales(std::span<const Type> scales, const Type& x) {
  for (const Type& scale : scales) {
    check_same_dtype(x, scale);
    const bool fits = scale.shape.elements() == 1 || scale.shape == Shape{x.shape.channels()};
    if (!fits) fail("a scale must be one number or [{}] but is {}", x.shape.channels(), scale.str());
  }
}

Tiling row_tiling(const Shape& shape) {
  constexpr std::int64_t kTileElements = 8192;  // enough work to be worth handing to a thread
  return {shape.rows(), std::max<std::int64_t>(1, kTileElements / shape.channels())};
}

RowScale row_scale(Types in, int index) {
  return {index, in[static_cast<std::size_t>(index)].shape.elements() > 1 ? 1 : 0};
}

Wires normalise(const RowNormDefinition& definition, const RowNormOptions& options, Wire x, Wire eps, Wire gain,
                Wire bias) {
  Wires result = definition.statistics_of(x, eps, counted_channels(options, x.shape().channels()));
  Wire y = (centres(definition) ? x - result[1] : x) * result[0];
  if (gain) y = y * gain;
  if (bias) y = y + bias;
  result.insert(result.begin(), y);
  return result;
}

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

RowNorm::RowNorm(const RowNormDefinition& definition, RowNormOptions options, int terms, unsigned scaled, bool twin)
    : definition_(definition),
      options_(options),
      terms_(terms),
      scaled_(scaled),
      twin_(twin),
      name_((terms > 1 ? "add_" : "") + std::string(definition.name)) {
  NORMA_ASSERT(terms >= 1 && terms <= kMostRowTerms);
  NORMA_ASSERT(scaled == 0 || (terms > 1 && scaled >> terms == 0));
}

std::string RowNorm::attributes() const {
  std::string text = attributes_of(options_);
  if (terms_ > 1) text += fmt::format(" terms={}", terms_);
  for (int k = 0, named = 0; k < terms_; ++k) {
    if (scales(k)) text += fmt::format("{}{}", named++ == 0 ? " scaled=" : ",", k + 1);
  }
  return text;
}

// A narrow stream makes all narrow. To a wide one further terms are added as they come, all in one width; they must be
// narrow where y is.
void RowNorm::choose(Widths& widths) const {
  const auto terms = widths.in.begin() + terms_;
  const bool further = std::find(widths.in.begin() + 1, terms, true) != terms;
  const bool y = widths.out[0], stream = std::find(widths.in.begin(), terms, false) == terms;
  widths.all(false);
  std::fill(widths.in.begin(), widths.in.begin() + terms_, stream);
  std::fill(widths.in.begin() + 1, widths.in.begin() + terms_, stream || further || y);
  widths.out[0] = stream || y;
  const int sum = forward_layout(*this).sum;
  if (sum >= 0) widths.out[static_cast<std::size_t>(sum)] = stream;
}

OpPtr RowNorm::with_twin() const {
  return twin_ ? nullptr : std::make_shared<RowNorm>(definition_, options_, terms_, scaled_, true);
}

std::vector<Type> RowNorm::infer(std::span<const Type> in) const {
  const RowForward layout = forward_layout(*this);
  const int unscaled = terms_ + 1 + affine_inputs(options_);
  check_count(in.size(), static_cast<std::size_t>(unscaled + std::popcount(scaled_)));
  const Type& x = in[0];
  check_row_input(x);
  for (int k = 1; k < terms_; ++k) check_type("every term", in[static_cast<std::size_t>(k)], x);
  check_type("eps", in[static_cast<std::size_t>(layout.eps())], {{1}, x.dtype});
  if (layout.gain >= 0) check_type("gain", in[static_cast<std::size_t>(layout.gain)], gain_type(definition_, x));
  if (layout.bias >= 0) check_type("bias", in[static_cast<std::size_t>(layout.bias)], {{x.shape.channels()}, x.dtype});
  check_row_scales(in.subspan(static_cast<std::size_t>(unscaled)), x);
  const Type statistic{x.shape.with(-1, 1), x.dtype};
  std::vector<Type> out = {x, statistic};
  if (layout.mean >= 0) out.push_back(statistic);
  if (layout.sum >= 0) out.push_back(x);
  return out;
}

Wires RowNorm::vjp(const VjpContext& context) const {
  const RowForward layout = forward_layout(*this);
  const std::size_t terms = static_cast<std::size_t>(terms_);
  const auto dout = [&](int out) { return out < 0 ? Wire() : context.dout[static_cast<std::size_t>(out)]; };
  // The saved statistics are for our own backward; whoever else differentiates through them, or by eps, gets the
  // derivative of the reference.
  if (dout(1) || dout(layout.mean) || context.needed[terms] || options_.relu) return Op::vjp(context);
  const Wire dy = dout(0), dsum = dout(layout.sum);
  Wires result(context.in.size());
  // Terms see the gradient of the sum through their scales.
  const auto share_out = [&](Wire total) {
    for (std::size_t k = 0; k < terms; ++k) {
      const int at = layout.scale[k].index;
      result[k] = at < 0 ? total : total * context.in[static_cast<std::size_t>(at)];
      if (at < 0 || !context.needed[static_cast<std::size_t>(at)]) continue;
      const Wire scale = context.in[static_cast<std::size_t>(at)];
      result[static_cast<std::size_t>(at)] = sum_to(total * context.in[k], scale.shape());
    }
  };
  if (!dy) {
    share_out(dsum);
    return result;
  }
  const Wire x = layout.sum < 0 ? context.in[0] : context.out[static_cast<std::size_t>(layout.sum)];
  Wires in = {x, dy, context.in[terms], context.out[1]};
  if (layout.mean >= 0) in.push_back(context.out[static_cast<std::size_t>(layout.mean)]);
  if (layout.gain >= 0) in.push_back(context.in[static_cast<std::size_t>(layout.gain)]);
  if (dsum) in.push_back(dsum);
  const Wires gradients =
      context.graph().apply(std::make_shared<RowNormBackward>(definition_, options_, dsum ? 1 : 0), in);
  share_out(gradients[0]);
  for (std::size_t k = 1; k < gradients.size(); ++k) result[terms + k] = gradients[k];
  return result;
}

Wires RowNorm::reference(std::span<const Wire> in) const {
  const RowForward layout = forward_layout(*this);
  const auto optional = [&](int index) { return index < 0 ? Wire() : in[static_cast<std::size_t>(index)]; };
  const std::size_t terms = static_cast<std::size_t>(terms_);
  Wires parts(in.begin(), in.begin() + terms_);
  for (std::size_t k = 0; k < terms; ++k) {
    if (const Wire scale = optional(layout.scale[k].index)) parts[k] = parts[k] * scale;
  }
  const Wire x = sum(parts);
  Wires out = normalise(definition_, options_, x, in[terms], optional(layout.gain), optional(layout.bias));
  if (options_.relu) out[0] = activate(out[0], Activation::relu);
  if (terms_ > 1) out.push_back(x);
  return out;
}

Cost RowNorm::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = static_cast<double>(in[0].shape.elements()) * (7 + terms_ + std::popcount(scaled_)),
          .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const RowNorm& op, Types in, Types out) {
  RowForward layout = forward_layout(op);
  for (RowScale& scale : layout.scale) {
    if (scale.index >= 0) scale = row_scale(in, scale.index);
  }
  layout.width = in[0].shape.channels();
  layout.counted = counted_channels(op.options(), layout.width);
  layout.stores = choose_stores(out[0]);
  const RowNormKernels kernels = op.definition().kernels();
  const auto run = in[0].dtype == DType::f32 ? kernels.forward_f32 : kernels.forward_f64;
  const Tiling tiling = row_tiling(in[0].shape);
  const std::int64_t row_bytes = layout.width * static_cast<std::int64_t>(size_of(in[0].dtype));
  return {
      .phases = {{tiling.tiles, [=](const Call& call,
                                    std::int64_t tile) { run(call, layout, tiling.begin(tile), tiling.end(tile)); }}},
      .worker_bytes = op.terms() > 1 ? row_bytes * kMaxRowsAtOnce : 0};
}

bool RowNorm::can_overwrite(int out, int in) const {
  const RowForward layout = forward_layout(*this);
  return in < terms_ && (out == 0 || out == layout.sum);
}

Wire apply_row_norm(const RowNormDefinition& definition, Wire x, Wire gain, Wire bias, Scalar eps, double fraction) {
  Wires in = {x, eps.beside(x)};
  const Affine affine = append_affine(in, gain, bias);
  const RowNormOptions options{.affine = affine, .fraction = fraction};
  return x.graph().apply(std::make_shared<RowNorm>(definition, options), in)[0];
}

}  // namespace norma
