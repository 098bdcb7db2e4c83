// Convolutions of 3 x 3 with a quarter of the products: Winograd's minimal filtering F(4 x 4, 3 x 3) (Lavin, Gray 2016,
// arXiv 1509.09308). An image is cut into tiles of 6 x 6 that overlap by two; tile and kernel are transformed, their
// products are 36 small matrix products, and what they give is transformed back to 4 x 4 pixels. Rounding errors are
// larger than those of a plain sum: up to some 4e-5 of the rms of what is answered, where TF32 has 5e-4.
#pragma once

#include "device/cpu/convolution.h"

namespace norma {

// Whether this is one, and large enough to gain.
bool fits_winograd(const ConvolutionShape& shape);
std::shared_ptr<const Convolution> make_winograd(const ConvolutionShape& shape);

}  // namespace norma
