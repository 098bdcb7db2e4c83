// Convolutions on a GPU: the kernels that convolution_plan.h chooses among.
#include "norma/ops/convolution.h"

#include <algorithm>

#include "ops/cuda/convolution_direct.h"
#include "ops/cuda/convolution_hopper.h"
#include "ops/cuda/convolution_plan.h"
#include "ops/cuda/fold.h"

namespace norma {
namespace {

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

int run_halo(const ConvolutionPlan& plan, const cuda::Call& call, std::int64_t out) {
  cuda::HaloCall told = plan.halo_call;
  told.members = call.members;
  told.a = call.in(0), told.b = call.in(1), told.out = out;
  return cuda::convolve_halo(plan.pass, told, call.stream);
}

int run_patches(const ConvolutionPlan& plan, const cuda::Call& call, std::int64_t out) {
  cuda::PatchCall told = plan.patch_call;
  told.members = call.members;
  told.a = call.in(0), told.b = call.in(1), told.out = out;
  return cuda::convolve_patches(plan.pass, told, call.stream);
}

int run_im2col(const ConvolutionPlan& plan, const cuda::Call& call, std::int64_t out) {
  cuda::Im2colCall told = plan.im2col_call;
  told.members = cuda::in_order(call.members);
  told.a = call.in(0), told.b = call.in(1), told.out = out;
  return cuda::convolve_im2col(plan.pass, told, call.stream);
}

int run_convolution(const ConvolutionPlan& plan, const cuda::Call& call) {
  const bool whole = (call.in(0) | call.in(1) | call.out(0)) % 16 == 0;
  const bool im2col = plan.im2col && whole && cuda::has_im2col();
  const bool halo = plan.halo && whole && cuda::halo_fits(plan.pass, plan.halo_call);
  const bool patches = plan.patches && (call.in(1) | call.out(0)) % 16 == 0;
  const std::int64_t splits = im2col    ? plan.im2col_call.splits
                              : halo    ? plan.halo_call.splits
                              : patches ? plan.patch_call.splits
                                        : plan.splits;
  const std::int64_t out = splits > 1 ? call.scratch : call.out(0);
  const int error = im2col        ? run_im2col(plan, call, out)
                    : halo        ? run_halo(plan, call, out)
                    : patches     ? run_patches(plan, call, out)
                    : plan.direct ? run_direct(plan, call, out)
                                  : run_tiles(plan, call, out);
  if (error != 0 || splits == 1) return error;
  return cuda::fold_lines(
      {.members = call.members, .from = call.scratch, .to = call.out(0), .lines = splits, .width = plan.weights},
      call.stream);
}

}  // namespace

cuda::Program convolution_program(const ConvolutionPlan& plan) {
  return {.launch = [plan](const cuda::Call& call) { return run_convolution(plan, call); },
          .scratch_bytes = plan.scratch_bytes()};
}

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
