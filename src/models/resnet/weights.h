// Weights of convolutions, and streams as images.
#pragma once

#include <string>

#include "norma/models/layer_branch.h"
#include "norma/models/weight_form.h"

namespace norma {

// Streams are [batch, pixels, channels].
Wire as_image(Wire stream, std::int64_t height, std::int64_t width);
Wire as_stream(Wire image);

// A weight [kernel, kernel, in / groups, out] named "weight" in a scope of this name, and what it makes of x[batch,
// height, width, in]. It starts with the deviation sqrt(2 groups / (kernel^2 out)) (He et al. 2015), or with
// sqrt(groups / (kernel^2 in)) where numbers are to keep their size, unless a rule for its role says otherwise. With a
// bias where asked for.
struct ConvolutionWeight {
  const char* scope;
  std::string role;
  std::int64_t kernel = 3, out = 0;
  std::int64_t stride = 1, groups = 1;
  // patches: side by side, without padding; transposed: of a kernel of even size, images become `stride` times as large
  enum class Reach { centred, patches, transposed } reach = Reach::centred;
  bool bias = false;
  WeightForm form = WeightForm::plain;
  enum class Start { he, keeps_size } start = Start::he;
};
Wire convolve(Parameters& parameters, Wire x, const ConvolutionWeight& weight, const SchemeRules& rules);

// Means of squares of two by two pixels; where a side is odd, the last of them are of those that there are.
Wire halved(Wire image);

}  // namespace norma
