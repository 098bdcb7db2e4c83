// The residual block of a U-Net: f(x) = conv(act(inner norm(conv(x) + shift))), 3 x 3 each, where the shift is made of
// the condition.
#pragma once

#include "models/unet/layout.h"
#include "norma/models/layer_branch.h"

namespace norma {

enum class Told { by_block, by_formula };  // who makes something of the condition

LayerBranch unet_layer_branch(const std::vector<UnetBlock>& blocks, Told told);

}  // namespace norma
