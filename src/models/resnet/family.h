// Residual networks of convolutions: an image in, stages of blocks, classes out.
#pragma once

#include "norma/models/family.h"

namespace norma {

FamilyRow resnet_family();

}  // namespace norma
