// A plain deep residual network: a vector in, feed-forward branches, classes out.
#pragma once

#include "norma/models/family.h"

namespace norma {

FamilyRow mlp_family();

}  // namespace norma
