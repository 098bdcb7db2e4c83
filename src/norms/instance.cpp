// InstanceNorm: y = gain (x - mean) / sqrt(var + eps) + bias, per sample and channel over the positions.
// Ulyanov, Vedaldi, Lempitsky 2016.
#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/norms/channel.h"
#include "norms/affine.h"

namespace norma {

Wire instance_norm(Wire x, Wire gain, Wire bias, Scalar eps) {
  Wires in = {x, eps.beside(x)};
  const Affine affine = append_affine(in, gain, bias);
  return x.graph().apply(std::make_shared<ChannelNorm>(ChannelNormOptions{"instance_norm", Region::sample, 0, affine}),
                         in)[0];
}

}  // namespace norma
