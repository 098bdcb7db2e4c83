#include "ops/cuda/convolution_im2col.h"

#ifdef NORMA_SM90A
#include "ops/cuda/convolution_im2col_launch.cuh"
#include "ops/cuda/hopper_product.h"
#endif

namespace norma::cuda {

#ifdef NORMA_SM90A

namespace {

using im2col::ImageLaunch;
using im2col::Path;

// All weights stay in shared memory where they are few.
template <bool kBack>
int convolve_narrow(const ImageLaunch& made, const Path& path, const Im2colCall& call, Stream stream) {
  using im2col::ImageTile;
  if (call.box == Im2colBox::row)
    return im2col::launch_image<ImageTile<kBack, 128, 64, true, true, 3>>(made, path, call, stream);
  const bool few = made.classes == 1 && made.windows[0].count * divide_up(path.channels, 64) <= im2col::kMostTaps;
  return few ? im2col::launch_image<ImageTile<kBack, 128, 64, true, true, 1>>(made, path, call, stream)
             : im2col::launch_image<ImageTile<kBack, 128, 64, true, false, 1>>(made, path, call, stream);
}

template <bool kBack>
int convolve_images(const Im2colCall& call, Stream stream) {
  using im2col::ImageTile;
  Path path;
  const ImageLaunch made = kBack ? im2col::back_launch(call, path) : im2col::forward_launch(call, path);
  switch (call.tile) {
    case Im2colTile::narrow: return convolve_narrow<kBack>(made, path, call, stream);
    case Im2colTile::square:
      return im2col::launch_image<ImageTile<kBack, 128, 128, false, false, 1>>(made, path, call, stream);
    case Im2colTile::tall:
      return im2col::launch_image<ImageTile<kBack, 256, 128, false, false, 1>>(made, path, call, stream);
    case Im2colTile::wide:
      return im2col::launch_image<ImageTile<kBack, 128, 256, false, false, 1>>(made, path, call, stream);
  }
  return cudaErrorInvalidValue;
}

int convolve_weights(const Im2colCall& call, Stream stream) {
  using im2col::WeightsTile;
  if (call.box == Im2colBox::row) return im2col::launch_weights<WeightsTile<3, 64, true>>(call, stream);
  switch (call.tile) {
    case Im2colTile::narrow: return im2col::launch_weights<WeightsTile<3, 64, false>>(call, stream);
    case Im2colTile::square: return im2col::launch_weights<WeightsTile<1, 128, false>>(call, stream);
    case Im2colTile::tall: return im2col::launch_weights<WeightsTile<2, 128, false>>(call, stream);
    case Im2colTile::wide: break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace

bool has_im2col() { return has_hopper_products() && im2col::encoder() != nullptr; }

int convolve_im2col(ConvolutionPass pass, const Im2colCall& call, Stream stream) {
  switch (pass) {
    case ConvolutionPass::forward: return convolve_images<false>(call, stream);
    case ConvolutionPass::data: return convolve_images<true>(call, stream);
    case ConvolutionPass::weights: return convolve_weights(call, stream);
  }
  return cudaErrorInvalidValue;
}

#else

bool has_im2col() { return false; }
int convolve_im2col(ConvolutionPass, const Im2colCall&, Stream) { return cudaErrorNotSupported; }

#endif

}  // namespace norma::cuda
