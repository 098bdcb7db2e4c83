#include "ops/cuda/convolution_plan.h"

#include <algorithm>

#include "ops/cuda/convolution_hopper.h"

namespace norma {
namespace {

constexpr std::int64_t kThinGroup = 8;       // channels of a group below which tiles would be mostly empty
constexpr std::int64_t kBlocksAtOnce = 264;  // of a card: two for each of 132 multiprocessors

std::int64_t blocks_of(std::int64_t size, std::int64_t block) { return (size + block - 1) / block; }

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

void describe_halo(ConvolutionPlan& plan) {
  const ConvolutionShape& s = plan.shape;
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  const bool weights = plan.pass == ConvolutionPass::weights;
  const bool suits = plan.narrow && plan.narrow_out != weights && s.groups == 1 && s.kernel_height == 3 &&
                     s.kernel_width == 3 && s.stride == 1 && s.padding == 1 && s.dilation == 1;
  if (!suits) return;
  plan.halo_call = {.batch = number(s.batch),
                    .height = number(s.height),
                    .width = number(s.width),
                    .in = number(s.in),
                    .channels_out = number(s.out)};
  plan.halo = cuda::halo_convolution(plan.pass, plan.halo_call);
  if (plan.halo && weights) cuda::split_halo(plan.halo_call);
}

void describe_im2col(ConvolutionPlan& plan) {
  const ConvolutionShape& s = plan.shape;
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  const bool weights = plan.pass == ConvolutionPass::weights;
  const bool suits = plan.narrow && plan.narrow_out != weights && s.groups == 1 && s.dilation == 1 &&
                     s.kernel_height == s.kernel_width && s.padding == s.kernel_height / 2;
  if (!suits) return;
  plan.im2col_call = {.batch = number(s.batch),
                      .height = number(s.height),
                      .width = number(s.width),
                      .in = number(s.in),
                      .out_height = number(s.out_height),
                      .out_width = number(s.out_width),
                      .channels_out = number(s.out),
                      .kernel = number(s.kernel_height),
                      .stride = number(s.stride)};
  plan.im2col = cuda::plan_im2col(plan.pass, plan.im2col_call);
}

void describe_patches(ConvolutionPlan& plan) {
  const ConvolutionShape& s = plan.shape;
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  const bool weights = plan.pass == ConvolutionPass::weights;
  if (!plan.narrow || plan.narrow_out == weights || s.groups != 1 || s.in >= kThinGroup) return;
  plan.patch_call = {.height = number(s.height),
                     .width = number(s.width),
                     .in = number(s.in),
                     .out_height = number(s.out_height),
                     .out_width = number(s.out_width),
                     .channels_out = number(s.out),
                     .kernel_height = number(s.kernel_height),
                     .kernel_width = number(s.kernel_width),
                     .stride = number(s.stride),
                     .padding = number(s.padding),
                     .dilation = number(s.dilation),
                     .pixels = number(plan.pixels()),
                     .by_out_width = cuda::FastDivisor(s.out_width),
                     .by_out_height = cuda::FastDivisor(s.out_height)};
  plan.patches = cuda::patch_convolution(plan.pass, plan.patch_call) && s.height * s.width * s.in < (1 << 30);
  if (!plan.patches || !weights) return;
  constexpr std::int64_t kMostParts = 256;
  const std::int64_t tiles = blocks_of(plan.pixels(), cuda::kPatchPixels), each = blocks_of(tiles, kMostParts);
  plan.patch_call.tiles_per_split = number(each);
  plan.patch_call.splits = number(blocks_of(tiles, each));
}

}  // namespace

ConvolutionPlan plan_convolution(ConvolutionPass pass, const ConvolutionSizes& sizes, Types in, Types out) {
  ConvolutionPlan plan{.pass = pass, .shape = sizes.shape};
  const ConvolutionShape& s = plan.shape;
  plan.narrow = in[0].dtype == DType::bf16;
  plan.narrow_out = out[0].dtype == DType::bf16;
  plan.weights = s.kernel_height * s.kernel_width * (s.in / s.groups) * s.out;
  plan.direct = s.groups > 1 && (s.in / s.groups < kThinGroup || s.out / s.groups < kThinGroup);
  plan.tile = tile_for(plan);
  describe_product(plan);
  describe_halo(plan);
  describe_patches(plan);
  describe_im2col(plan);
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

std::int64_t ConvolutionPlan::scratch_bytes() const {
  const std::int64_t lines = std::max<std::int64_t>(
      {splits, halo ? halo_call.splits : 1, patches ? patch_call.splits : 1, im2col ? im2col_call.splits : 1});
  return lines > 1 ? lines * weights * static_cast<std::int64_t>(sizeof(float)) : 0;
}

}  // namespace norma
