// Graph convolutional networks: features of nodes and edges between them in, classes of nodes out.
#pragma once

#include "norma/models/family.h"

namespace norma {

FamilyRow gcn_family();

}  // namespace norma
