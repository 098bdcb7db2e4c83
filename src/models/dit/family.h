// Diffusion transformers: patches of a noised image, encoder layers told the timestep and the class, numbers out.
#pragma once

#include "norma/models/family.h"

namespace norma {

FamilyRow dit_family();

}  // namespace norma
