// Which way a convolution takes on a GPU: tiles of a matrix product, or a thread to an element where groups are thin.
// Everything follows from shapes and types, so a member's bits do not depend on its neighbours.
#include "ops/cuda/convolution.h"

#include <algorithm>

#include "norma/ops/convolution.h"
#include "ops/convolution_sizes.h"
#include "ops/cuda/convolution_direct.h"
#include "ops/cuda/convolution_hopper.h"
#include "ops/cuda/fold.h"

namespace norma {
namespace {

using cuda::ConvolutionPass;
using cuda::ConvolutionTile;

constexpr std::int64_t kThinGroup = 8;       // channels of a group below which tiles would be mostly empty
constexpr std::int64_t kBlocksAtOnce = 264;  // of a card: two for each of 132 multiprocessors

std::int64_t blocks_of(std::int64_t size, std::int64_t block) { return (size + block - 1) / block; }

struct ConvolutionPlan {
  ConvolutionPass pass = ConvolutionPass::forward;
  ConvolutionShape shape = {};
  bool narrow = false, narrow_out = false;
  bool direct = false;
  ConvolutionTile tile = ConvolutionTile::single;
  cuda::ConvolutionCall call = {};
  std::int64_t splits = 1, per_split = 0;
  std::int64_t weights = 0;  // elements

  std::int64_t pixels() const { return shape.batch * shape.out_height * shape.out_width; }
};

// Parts of the sum over pixels: as long as the slowest block computes, and partial sums are added, in steps along k.
std::int64_t best_splits(std::int64_t blocks, std::int64_t steps) {
  std::int64_t best = 1;
  double least = 0;
  for (std::int64_t splits = 1; splits <= std::max<std::int64_t>(1, steps / 4) && splits <= 1024; ++splits) {
    const std::int64_t rounds = blocks_of(blocks * splits, kBlocksAtOnce);
    const double time =
        static_cast<double>(rounds * (blocks_of(steps, splits) + 6)) + 0.05 * static_cast<double>(splits);
    if (splits > 1 && time >= least) continue;
    best = splits, least = time;
  }
  return best;
}

ConvolutionTile tile_for(const ConvolutionPlan& plan) {
  const std::int64_t whole = plan.narrow ? 8 : 4;
  const std::int64_t in = plan.shape.in / plan.shape.groups, out = plan.shape.out / plan.shape.groups;
  if (in % whole != 0 || out % whole != 0) return ConvolutionTile::single;
  const std::int64_t n = plan.pass == ConvolutionPass::data ? in : out;
  if (!plan.narrow) return n <= 32 ? ConvolutionTile::n32 : ConvolutionTile::n64;
  if (n <= 16) return ConvolutionTile::n16;
  if (n <= 32) return ConvolutionTile::n32;
  return n <= 64 ? ConvolutionTile::n64 : ConvolutionTile::n128;
}

// The product of one group, as convolution.h has it.
void describe_product(ConvolutionPlan& plan) {
  const ConvolutionShape& s = plan.shape;
  cuda::ConvolutionCall& call = plan.call;
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  const bool data = plan.pass == ConvolutionPass::data, weights = plan.pass == ConvolutionPass::weights;
  const std::int64_t in = s.in / s.groups, out = s.out / s.groups, taps = s.kernel_height * s.kernel_width;
  call.height = number(data ? s.out_height : s.height), call.width = number(data ? s.out_width : s.width);
  call.rows_height = number(data ? s.height : s.out_height), call.rows_width = number(data ? s.width : s.out_width);
  if (data && s.stride > 1 && s.dilation == 1 && s.height % s.stride == 0 && s.width % s.stride == 0) {
    call.classes = number(s.stride * s.stride);
    call.rows_height = number(s.height / s.stride), call.rows_width = number(s.width / s.stride);
  }
  call.channels = number(data ? s.out : s.in), call.depth = number(data ? out : in);
  call.kernel_height = number(s.kernel_height), call.kernel_width = number(s.kernel_width);
  call.stride = number(s.stride), call.padding = number(s.padding), call.dilation = number(s.dilation);
  call.groups = number(s.groups);
  const std::int64_t rows = s.batch * call.rows_height * call.rows_width;
  call.m = number(weights ? taps * in : rows);
  call.n = number(data ? in : out);
  call.k = number(weights ? rows : taps * call.depth);
  call.b_row = number(s.out), call.taps_in = number(in);
  call.out_row = number(data ? s.in : s.out);
  call.by_rows_width = cuda::FastDivisor(call.rows_width), call.by_rows_height = cuda::FastDivisor(call.rows_height);
  call.by_depth = cuda::FastDivisor(call.depth), call.by_stride = cuda::FastDivisor(call.stride);
}

ConvolutionPlan plan_convolution(ConvolutionPass pass, const ConvolutionSizes& sizes, Types in, Types out) {
  ConvolutionPlan plan{.pass = pass, .shape = sizes.shape};
  const ConvolutionShape& s = plan.shape;
  plan.narrow = in[0].dtype == DType::bf16;
  plan.narrow_out = out[0].dtype == DType::bf16;
  plan.weights = s.kernel_height * s.kernel_width * (s.in / s.groups) * s.out;
  plan.direct = s.groups > 1 && (s.in / s.groups < kThinGroup || s.out / s.groups < kThinGroup);
  plan.tile = tile_for(plan);
  describe_product(plan);
  if (pass != ConvolutionPass::weights) return plan;
  const std::int64_t step = !plan.narrow       ? cuda::kConvolutionDepth32
                            : plan.call.n > 32 ? cuda::kHopperDepth
                                               : cuda::kConvolutionDepth16;
  const std::int64_t blocks = plan.direct ? blocks_of(s.out, 32) * plan.weights / s.out
                                          : s.groups * blocks_of(plan.call.m, cuda::tile_rows(plan.tile)) *
                                                blocks_of(plan.call.n, cuda::tile_columns(plan.tile));
  const std::int64_t steps = blocks_of(plan.pixels(), step);
  plan.per_split = blocks_of(steps, best_splits(blocks, steps)) * step;
  plan.splits = blocks_of(plan.pixels(), plan.per_split);
  return plan;
}

std::int64_t scratch_of(const ConvolutionPlan& plan) {
  return plan.splits > 1 ? plan.splits * plan.weights * static_cast<std::int64_t>(sizeof(float)) : 0;
}

int run_direct(const ConvolutionPlan& plan, const cuda::Call& call, std::int64_t out) {
  const ConvolutionShape& s = plan.shape;
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  return cuda::convolve_directly(plan.pass,
                                 {.members = call.members,
                                  .a = call.in(0),
                                  .b = call.in(1),
                                  .out = out,
                                  .batch = s.batch,
                                  .height = s.height,
                                  .width = s.width,
                                  .in = s.in,
                                  .out_height = s.out_height,
                                  .out_width = s.out_width,
                                  .channels_out = s.out,
                                  .kernel_height = number(s.kernel_height),
                                  .kernel_width = number(s.kernel_width),
                                  .stride = number(s.stride),
                                  .padding = number(s.padding),
                                  .dilation = number(s.dilation),
                                  .in_group = s.in / s.groups,
                                  .out_group = s.out / s.groups,
                                  .splits = plan.splits,
                                  .pixels_per_split = plan.per_split,
                                  .narrow = plan.narrow,
                                  .narrow_out = plan.narrow_out},
                                 call.stream);
}

int run_tiles(const ConvolutionPlan& plan, const cuda::Call& call, std::int64_t out) {
  cuda::ConvolutionCall told = plan.call;
  told.members = call.members;
  told.a = call.in(0), told.b = call.in(1), told.out = out;
  told.splits = static_cast<int>(plan.splits);
  told.k_per_split = plan.splits > 1 ? static_cast<int>(plan.per_split) : told.k;
  told.split_elements = plan.weights;
  told.narrow_out = plan.narrow_out;
  const std::int64_t whole = plan.narrow_out ? 8 : 4;
  told.wide_out = told.n % whole == 0 && told.out_row % whole == 0 && out % 16 == 0;
  const bool aligned = (told.a | told.b) % 16 == 0;
  const cuda::ConvolutionLaunch launch{plan.pass, aligned ? plan.tile : ConvolutionTile::single};
  if (plan.narrow && cuda::hopper_convolution(launch, told)) return cuda::convolve_hopper(launch, told, call.stream);
  if (plan.narrow) return cuda::convolve_bf16(launch, told, call.stream);
  return call.math == cuda::Math::tf32 ? cuda::convolve_tf32(launch, told, call.stream)
                                       : cuda::convolve_f32(launch, told, call.stream);
}

cuda::Program convolution_program(const ConvolutionPlan& plan) {
  return {.launch =
              [plan](const cuda::Call& call) {
                const std::int64_t out = plan.splits > 1 ? call.scratch : call.out(0);
                const int error = plan.direct ? run_direct(plan, call, out) : run_tiles(plan, call, out);
                if (error != 0 || plan.splits == 1) return error;
                return cuda::fold_lines({.members = call.members,
                                         .from = call.scratch,
                                         .to = call.out(0),
                                         .lines = plan.splits,
                                         .width = plan.weights},
                                        call.stream);
              },
          .scratch_bytes = scratch_of(plan)};
}

}  // namespace

// Rows and places in sums are counted in 31 bits.
bool cuda_serves_convolution(const ConvolutionSizes& sizes) {
  const ConvolutionShape& s = sizes.shape;
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - (1 << 16);
  const std::int64_t taps = s.kernel_height * s.kernel_width;
  return s.batch * s.height * s.width < kMost && s.batch * s.out_height * s.out_width < kMost &&
         taps * std::max(s.in, s.out) < kMost && s.groups * s.stride * s.stride < (1 << 16);
}

bool cuda_serves(const Conv2d& op, Types in, Types) {
  return cuda_serves_convolution({op.options(), in[0].shape, in[1].shape});
}
bool cuda_serves(const Conv2dData& op, Types in, Types out) {
  return cuda_serves_convolution({op.options(), out[0].shape, in[1].shape});
}
bool cuda_serves(const Conv2dWeights& op, Types in, Types out) {
  return out[0].dtype == DType::f32 && cuda_serves_convolution({op.options(), in[0].shape, out[0].shape});
}

cuda::Program cuda_kernel(const Conv2d& op, Types in, Types out) {
  const ConvolutionSizes sizes(op.options(), in[0].shape, in[1].shape);
  return convolution_program(plan_convolution(ConvolutionPass::forward, sizes, in, out));
}

cuda::Program cuda_kernel(const Conv2dData& op, Types in, Types out) {
  const ConvolutionSizes sizes(op.options(), out[0].shape, in[1].shape);
  return convolution_program(plan_convolution(ConvolutionPass::data, sizes, in, out));
}

cuda::Program cuda_kernel(const Conv2dWeights& op, Types in, Types out) {
  const ConvolutionSizes sizes(op.options(), in[0].shape, out[0].shape);
  return convolution_program(plan_convolution(ConvolutionPass::weights, sizes, in, out));
}

}  // namespace norma
