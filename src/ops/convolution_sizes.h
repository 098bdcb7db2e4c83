// The sizes of a convolution, checked.
#pragma once

#include "device/cpu/convolution.h"
#include "norma/ops/convolution.h"

namespace norma {

struct ConvolutionSizes {
  ConvolutionShape shape;

  // Throws Error where they do not fit.
  ConvolutionSizes(const ConvolutionOptions& options, const Shape& x, const Shape& weight);
  Shape y() const { return {shape.batch, shape.out_height, shape.out_width, shape.out}; }
  double flops() const;
};

}  // namespace norma
