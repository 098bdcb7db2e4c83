// bf16 convolutions of 1 x 1 and 3 x 3 over 64 and more channels on GPUs of compute capability 9.0, whose copy engine
// gathers the pixels that a tap sees by itself, zeros outside of the image. The .cu file is built for sm_90a.
#pragma once

#include "ops/cuda/convolution.h"

namespace norma::cuda {

// What one copy brings: the pixels of a tap, or those that the three taps of a row of 3 x 3 see, which lie one further
// each. The latter reads images a third as often, and computes two positions more for every line of pixels.
enum class Im2colBox { tap, row };

// Parts of a result that a block has: 128 x 64, 128 x 128, 256 x 128 or 128 x 256 of an image; of weights, whose rows
// come in units of 64 channels of one tap, 9, 3 or 6 units by as many columns, and none is wide.
enum class Im2colTile { narrow, square, tall, wide };

struct Im2colCall {
  Members members = {};
  std::int64_t a = 0, b = 0, out = 0;  // as for ConvolutionCall; out of weights is f32, a line for each split
  int batch = 0, height = 0, width = 0, in = 0;
  int out_height = 0, out_width = 0, channels_out = 0;
  int kernel = 1, stride = 1;  // the padding is kernel / 2
  Im2colBox box = Im2colBox::tap;
  Im2colTile tile = Im2colTile::narrow;
  int splits = 1, steps_per_split = 1;  // of weights
};

constexpr int kIm2colDepth = 64;  // channels, or pixels of weights, of a step along k

// Whether a convolution of these sizes, all of it bf16 but gradients of weights, has such a kernel; chooses box, tile
// and splits. Where it runs needs tensors that begin at multiples of 16 bytes and a card that has it.
bool plan_im2col(ConvolutionPass pass, Im2colCall& call);
// The same with a choice made: false where it does not fit the shape.
bool plan_im2col(ConvolutionPass pass, Im2colCall& call, Im2colBox box);
bool plan_im2col(ConvolutionPass pass, Im2colCall& call, Im2colTile tile);
bool has_im2col();
int convolve_im2col(ConvolutionPass pass, const Im2colCall& call, Stream stream);

}  // namespace norma::cuda
