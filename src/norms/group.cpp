// GroupNorm: y = gain (x - mean) / sqrt(var + eps) + bias, per sample and group of channels; gain and bias per
// channel. Wu, He 2018.
#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/norms/channel.h"
#include "norms/affine.h"

namespace norma {

Wire group_norm(Wire x, std::int64_t groups, Wire gain, Wire bias, Scalar eps) {
  if (groups < 1) fail("group_norm: needs at least one group, but {} were asked for", groups);
  Wires in = {x, eps.beside(x)};
  const Affine affine = append_affine(in, gain, bias);
  return x.graph().apply(
      std::make_shared<ChannelNorm>(ChannelNormOptions{"group_norm", Region::sample, groups, affine}), in)[0];
}

}  // namespace norma
