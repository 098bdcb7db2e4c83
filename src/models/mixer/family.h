// MLP-Mixer: patches of an image, mixed over positions and over channels in turn.
#pragma once

#include "norma/models/family.h"

namespace norma {

FamilyRow mixer_family();

}  // namespace norma
