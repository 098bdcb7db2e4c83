// Vision transformers: patches of an image as tokens, encoder layers, classes out.
#pragma once

#include "norma/models/family.h"

namespace norma {

FamilyRow vit_family();

}  // namespace norma
