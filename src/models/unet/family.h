// U-Nets: a noised image made small and large again by residual blocks of convolutions, with skip connections and
// attention where it is smallest.
#pragma once

#include "norma/models/family.h"

namespace norma {

FamilyRow unet_family();

}  // namespace norma
