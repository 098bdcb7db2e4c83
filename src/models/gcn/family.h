// Graph networks: features of nodes and edges between them in, classes of nodes or of whole graphs out.
#pragma once

#include "norma/models/family.h"

namespace norma {

FamilyRow gcn_family();
FamilyRow graphs_family();

}  // namespace norma
