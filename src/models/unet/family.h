// U-Nets: a noised image made small and large again by residual blocks of convolutions, with skip connections, and
// attention in the middle and at one chosen size.
#pragma once

#include "norma/models/family.h"

namespace norma {

FamilyRow unet_family();

}  // namespace norma
