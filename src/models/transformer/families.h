// Three families of transformers.
#pragma once

#include "norma/models/family.h"

namespace norma {

FamilyRow decoder_family();
FamilyRow encoder_family();
FamilyRow encoder_decoder_family();

}  // namespace norma
