// The row norms as programs of the GPU: what their ops say, told to the launches.
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "norma/core/error.h"
#include "norms/cuda/row_launch.h"
#include "norms/row.h"

namespace norma {
namespace {

struct RowLaunches {
  std::string_view name;
  int (*forward)(const cuda::RowNormCall&, cuda::Stream);
  int (*backward)(const cuda::RowNormBackwardCall&, cuda::Stream);
};
constexpr std::array kRowLaunches = {RowLaunches{"layer_norm", cuda::layer_norm, cuda::layer_norm_backward},
                                     RowLaunches{"rms_norm", cuda::rms_norm, cuda::rms_norm_backward},
                                     RowLaunches{"prms_norm", cuda::rms_norm, cuda::rms_norm_backward},
                                     RowLaunches{"scale_norm", cuda::scale_norm, cuda::scale_norm_backward}};

const RowLaunches& launches_of(const RowNormDefinition& definition) {
  for (const RowLaunches& launches : kRowLaunches) {
    if (launches.name == definition.name) return launches;
  }
  throw InternalError("internal error: no GPU launch for a row norm");
}

}  // namespace

cuda::Program cuda_kernel(const RowNorm& op, Types in, Types out) {
  cuda::RowNormCall shape;
  const auto narrow = [](const Type& type) { return type.dtype == DType::bf16; };
  const bool branch = narrow(out[0]) || op.twin() || (op.terms() > 1 && narrow(in[1]));
  shape.types = narrow(in[0]) ? cuda::RowTypes::bf16
                : branch      ? cuda::RowTypes::f32_stream_bf16_branch
                              : cuda::RowTypes::f32;
  const bool swapped = shape.types == cuda::RowTypes::f32_stream_bf16_branch && !narrow(out[0]);  // y is the wide one
  shape.rows = in[0].shape.rows();
  shape.width = in[0].shape.channels();
  shape.counted = counted_channels(op.options(), shape.width);
  shape.terms = op.terms();
  const bool gain = has_gain(op.options().affine), bias = has_bias(op.options().affine);
  const bool mean = centres(op.definition()), sum = op.terms() > 1, twin = op.twin();
  shape.scaled = op.scaled() != 0;
  shape.relu = op.options().relu;
  std::vector<int> scaled_terms;
  for (int term = 0; term < op.terms(); ++term) {
    if (!op.scales(term)) continue;
    const Type& type = in[in.size() - static_cast<std::size_t>(std::popcount(op.scaled())) + scaled_terms.size()];
    shape.scale[term].per_channel = type.shape.elements() > 1;
    scaled_terms.push_back(term);
  }
  const auto launch = launches_of(op.definition()).forward;
  return {.launch = [=](const cuda::Call& call) {
    cuda::RowNormCall row = shape;
    row.members = call.members;
    int next = 0;
    for (; next < row.terms; ++next) row.term[next] = call.in(next);
    row.eps = call.in(next++);
    if (gain) row.gain = call.in(next++);
    if (bias) row.bias = call.in(next++);
    for (const int term : scaled_terms) row.scale[term].at = call.in(next++);
    int next_out = 0;
    row.y = call.out(next_out++);
    row.rstd = call.out(next_out++);
    if (mean) row.mean = call.out(next_out++);
    if (sum) row.sum = call.out(next_out++);
    if (twin) row.wide_y = call.out(next_out++);
    if (swapped) std::swap(row.y, row.wide_y);
    return launch(row, call.stream);
  }};
}

cuda::Program cuda_kernel(const RowNormBackward& op, Types in, Types out) {
  cuda::RowNormBackwardCall shape;
  const auto narrow = [](const Type& type) { return type.dtype == DType::bf16; };
  shape.types = narrow(in[0])   ? cuda::RowTypes::bf16
                : narrow(in[1]) ? cuda::RowTypes::f32_stream_bf16_branch
                                : cuda::RowTypes::f32;
  const bool swapped = !narrow(in[0]) && narrow(out[0]), twin = op.twin();  // the total is the narrow one
  shape.rows = in[0].shape.rows();
  shape.width = in[0].shape.channels();
  shape.counted = counted_channels(op.options(), shape.width);
  shape.residuals = op.residuals();
  shape.lines = op.lines();
  const bool totals = op.totals() == TotalSums::lines;
  const bool gain = has_gain(op.options().affine), bias = has_bias(op.options().affine);
  const bool mean = centres(op.definition());
  shape.scaled = op.scaled();
  for (int k = 0; k < op.scaled(); ++k) {
    const Type& type = in[in.size() - static_cast<std::size_t>(op.scaled() - k)];
    shape.scale[k].per_channel = type.shape.elements() > 1;
  }
  const auto launch = launches_of(op.definition()).backward;
  return {.launch =
              [=](const cuda::Call& call) {
                cuda::RowNormBackwardCall row = shape;
                row.members = call.members;
                int next = 0;
                row.x = call.in(next++);
                row.dy = call.in(next++);
                row.eps = call.in(next++);
                row.rstd = call.in(next++);
                if (mean) row.mean = call.in(next++);
                if (gain) row.gain = call.in(next++);
                for (int i = 0; i < row.residuals; ++i) row.residual[i] = call.in(next++);
                for (int k = 0; k < row.scaled; ++k) row.scale[k].at = call.in(next++);
                int next_out = 0;
                row.dx = call.out(next_out++);
                if (gain) row.dgain = call.out(next_out++);
                if (bias) row.dbias = call.out(next_out++);
                if (totals) row.dx_lines = call.out(next_out++);
                for (int k = 0; k < row.scaled; ++k) row.scaled_dx[k] = call.out(next_out++);
                if (twin) row.narrow_dx = call.out(next_out++);
                if (swapped) std::swap(row.dx, row.narrow_dx);
                row.scratch = call.scratch;
                return launch(row, call.stream);
              },
          .scratch_bytes = cuda::row_backward_scratch(shape.types, shape.rows, shape.width)};
}

}  // namespace norma
