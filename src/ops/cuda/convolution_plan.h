// Which way a convolution takes on a GPU. Everything follows from shapes and types, so a member's bits do not depend on
// its neighbours.
#pragma once

#include "norma/core/shape.h"
#include "norma/graph/op.h"
#include "ops/convolution_sizes.h"
#include "ops/cuda/convolution_halo.h"
#include "ops/cuda/convolution_im2col.h"
#include "ops/cuda/convolution_patches.h"

namespace norma {

using cuda::ConvolutionPass;
using cuda::ConvolutionTile;

struct ConvolutionPlan {
  ConvolutionPass pass = ConvolutionPass::forward;
  ConvolutionShape shape = {};
  bool narrow = false, narrow_out = false;
  bool direct = false;
  ConvolutionTile tile = ConvolutionTile::single;
  cuda::ConvolutionCall call = {};
  std::int64_t splits = 1, per_split = 0;
  std::int64_t weights = 0;  // elements
  bool halo = false;         // where tensors are aligned and the card has room
  cuda::HaloCall halo_call = {};
  bool patches = false;  // where tensors are aligned
  cuda::PatchCall patch_call = {};
  bool im2col = false;  // before all others, where tensors are aligned and the card has it
  cuda::Im2colCall im2col_call = {};

  // Of one member.
  std::int64_t scratch_bytes() const;
  std::int64_t pixels() const { return shape.batch * shape.out_height * shape.out_width; }
};

ConvolutionPlan plan_convolution(ConvolutionPass pass, const ConvolutionSizes& sizes, Types in, Types out);
cuda::Program convolution_program(const ConvolutionPlan& plan);

}  // namespace norma
