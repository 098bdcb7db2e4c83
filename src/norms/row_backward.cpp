// The derivative of every row norm outside its inner loops: shapes, reference, tiles.
#include <algorithm>

#include "norma/core/error.h"
#include "norma/graph/differentiate.h"
#include "norma/graph/sum.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"
#include "norms/partials.h"
#include "norms/row.h"
#include "ops/check.h"

namespace norma {
namespace {

RowBackward backward_layout(const RowNormBackward& op) {
  RowBackward layout{.residuals = op.residuals(), .scaled = op.scaled()};
  int in = 4, out = 1;
  if (centres(op.definition())) layout.mean = in++;
  if (has_gain(op.options().affine)) layout.gain = in++;
  layout.residual = in;
  in += op.residuals();
  for (int k = 0; k < op.scaled(); ++k) layout.scale[static_cast<std::size_t>(k)].index = in++;
  if (has_gain(op.options().affine)) layout.dgain = out++;
  if (has_bias(op.options().affine)) layout.dbias = out++;
  if (op.totals() == TotalSums::lines) ++out;
  layout.scaled_out = out;
  return layout;
}

}  // namespace

RowNormBackward::RowNormBackward(const RowNormDefinition& definition, RowNormOptions options, int residuals, int scaled,
                                 bool twin, std::int64_t lines, TotalSums totals)
    : definition_(definition),
      options_(options),
      residuals_(residuals),
      scaled_(scaled),
      twin_(twin),
      lines_(lines),
      totals_(totals),
      name_(std::string(definition.name) + (residuals > 0 ? "_backward_add" : "_backward")) {
  NORMA_ASSERT(residuals >= 0 && residuals <= kMostRowTerms && scaled >= 0 && scaled <= kMostRowTerms);
  NORMA_ASSERT(lines == 0 || definition.gain == GainExtent::channels);
  NORMA_ASSERT(totals == TotalSums::none || lines > 0);
}

std::string RowNormBackward::attributes() const {
  std::string text = attributes_of(options_);
  if (residuals_ > 0) text += fmt::format(" residuals={}", residuals_);
  if (scaled_ > 0) text += fmt::format(" scaled={}", scaled_);
  if (lines_ > 0) text += fmt::format(" lines={}", lines_);
  if (totals_ == TotalSums::lines) text += " totals";
  return text;
}

// A narrow stream makes all narrow. The gradient of a wide one is wide, unless nobody wants it so.
void RowNormBackward::choose(Widths& widths) const {
  const RowBackward layout = backward_layout(*this);
  const bool stream = widths.in[0], dy = stream || widths.in[1], total = stream || widths.out[0];
  widths.all(false);
  widths.in[0] = stream;
  widths.in[1] = dy;
  for (int k = 0; k < residuals_; ++k) widths.in[static_cast<std::size_t>(layout.residual + k)] = stream;
  widths.out[0] = total;
  for (int k = 0; k < scaled_; ++k) widths.out[static_cast<std::size_t>(layout.scaled_out + k)] = stream;
}

OpPtr RowNormBackward::with_twin() const {
  if (twin_) return nullptr;
  return std::make_shared<RowNormBackward>(definition_, options_, residuals_, scaled_, true, lines_, totals_);
}

std::shared_ptr<const RowNormBackward> RowNormBackward::with_lines(std::int64_t lines, TotalSums totals) const {
  return std::make_shared<RowNormBackward>(definition_, options_, residuals_, scaled_, twin_, lines, totals);
}

std::vector<Type> RowNormBackward::infer(std::span<const Type> in) const {
  const RowBackward layout = backward_layout(*this);
  check_count(in.size(), static_cast<std::size_t>(layout.residual + residuals_ + scaled_));
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
  check_row_scales(in.last(static_cast<std::size_t>(scaled_)), x);
  std::vector<Type> out = {x};
  const auto sums = [&](const Type& whole) { return lines_ > 0 ? Type{{lines_, whole.shape[0]}, x.dtype} : whole; };
  if (layout.dgain >= 0) out.push_back(sums(gain_type(definition_, x)));
  if (layout.dbias >= 0) out.push_back(sums({{x.shape.channels()}, x.dtype}));
  if (totals_ == TotalSums::lines) out.push_back(sums({{x.shape.channels()}, x.dtype}));
  out.insert(out.end(), static_cast<std::size_t>(scaled_), x);
  return out;
}

// The derivative of the forward reference, statistics included: rstd and mean are recomputed from x, so that second
// derivatives see everything that depends on it.
Wires RowNormBackward::reference(std::span<const Wire> in) const {
  const RowBackward layout = backward_layout(*this);
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
  const std::span<const Wire> rest = in.subspan(static_cast<std::size_t>(layout.residual));
  const std::size_t residuals = static_cast<std::size_t>(residuals_);
  parts.insert(parts.end(), rest.begin(), rest.begin() + residuals_);
  result[0] = sum(parts);
  if (totals_ == TotalSums::lines) result.push_back(sum_to(result[0], {x.shape().channels()}));
  for (std::size_t k = 1; lines_ > 0 && k < result.size(); ++k) {
    result[k] = pad(reshape(result[k], {1, x.shape().channels()}), 0, 0, lines_);
  }
  for (const Wire& scale : rest.subspan(residuals)) result.push_back(result[0] * scale);
  return result;
}

Cost RowNormBackward::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = static_cast<double>(in[0].shape.elements()) * (14 + residuals_ + scaled_),
          .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const RowNormBackward& op, Types in, Types out) {
  RowBackward layout = backward_layout(op);
  for (RowScale& scale : layout.scale) {
    if (scale.index >= 0) scale = row_scale(in, scale.index);
  }
  layout.width = in[0].shape.channels();
  layout.counted = counted_channels(op.options(), layout.width);
  // The channels that do not count are stored by themselves: streaming needs them to begin with a whole vector.
  const Shape counted = in[0].shape.with(-1, layout.counted);
  layout.stores = streams_rows({counted, in[0].dtype}) ? choose_stores(out[0]) : Stores::plain;
  const RowNormKernels kernels = op.definition().kernels();
  const auto build = [&]<typename T>(RowNormKernels::Backward<T> run) {
    const Tiling tiling = row_tiling(in[0].shape);
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
  const RowBackward layout = backward_layout(*this);
  const bool gradient = out == 0 || out >= layout.scaled_out;
  return gradient && (in < 2 || (in >= layout.residual && in < layout.residual + residuals_));
}

}  // namespace norma
